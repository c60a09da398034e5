#!/bin/bash
# sbatch --image=REGISTRY/IMAGE mpi.sh      of an image that has the program and its MPI library
# A program of Open MPI on three nodes. A gang stands still between its turns; MPI only waits meanwhile.
#SBATCH --job-name=mpi
#SBATCH --nodes=3 --ntasks-per-node=1 --time=60
#SBATCH --output=mpi-%j.out

# The tasks find each other by PMIx. MPICH, MVAPICH and Intel MPI want --mpi=pmi2.
srun --mpi=pmix ./solver

# Or by the launcher of the library, which calls srun once:
# mpirun ./solver
