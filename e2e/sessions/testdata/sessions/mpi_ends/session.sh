# How steps of MPI begin and end: aborts, exits, no PMI, kinds that do not exist, variables, mpiexec.
# needs: mpicc.mpich
mpicc.mpich -o ends ends.c && mpicc.mpich -o hello hello.c || exit 9
sbatch -N2 -n4 -o abort --wrap 'srun --mpi=pmi2 ./ends abort; echo rc $?'; settle; grep rc abort
sbatch -N2 -n4 -o exit --wrap 'srun --mpi=pmi2 ./ends exit; echo rc $?'; settle; cat exit
sbatch -N2 -n2 -o without --wrap 'srun --mpi=none ./hello; srun ./hello; echo rc $?'; settle; sort without
sbatch -N1 -n2 -o bogus --wrap 'srun --mpi=bogus true; echo rc $?'; settle; cat bogus
sbatch -N2 -n3 -o env --wrap 'srun --mpi=pmi2 bash -c "env | grep ^PMI | grep -v _FD | sort | xargs" | sort; srun --mpi=none bash -c "env | grep ^PMI"; echo rc $?'; settle; cat env
sbatch -N1 -n2 -o mixed --wrap '(SLURM_MPI_TYPE=pmi2 srun ./hello; srun -n1 --mpi=pmi2 bash -c "./hello; echo done"; srun --mpi=pmi2 true; echo rc $?) | sort'; settle; cat mixed
sbatch -N2 -n4 -o mpiexec --wrap 'mpiexec.mpich ./hello | sort; echo rc $?'; settle; cat mpiexec
sbatch -N3 -n6 -o cyclic --wrap 'srun --mpi=pmi2 -m cyclic ./hello | sort; srun --mpi=pmi2 -n3 -N1 -r1 --overcommit ./hello | sort'; settle; cat cyclic
rm -f ends hello
