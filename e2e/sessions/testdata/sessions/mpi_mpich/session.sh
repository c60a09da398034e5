# MPICH directly by srun with PMI-2 and PMI-1.
# needs: mpicc.mpich
mpicc.mpich -o hello hello.c || exit 9
sbatch -N3 -n6 -o pmi2 -e pmi2.err --wrap 'srun --mpi=pmi2 ./hello | sort'; settle; cat pmi2
