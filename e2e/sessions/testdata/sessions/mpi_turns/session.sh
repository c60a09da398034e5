# Two gangs of MPI on the same CPUs take turns: a ring, sums, and a solver that exchanges its halo.
# needs: mpicc.mpich
# cluster: {conf: {PreemptMode: GANG, SchedulerTimeSlice: 5}, partitions: [{name: main, Default: "YES", OverSubscribe: "FORCE:2"}]}
mpicc.mpich -O1 -o turns turns.c -lm || exit 9
for gang in 1 2; do
  sbatch -N3 -n6 --exclusive -o out$gang --wrap 'srun --mpi=pmi2 ./turns 2> /dev/null'
done
sleep 3; squeue -h -o '%T %D' | sort
settle 600
cat out1 out2
rm -f turns
