# Open MPI by its own mpirun, which starts its daemons by srun.
# needs: mpicc.openmpi mpirun.openmpi
mpicc.openmpi -o hello hello.c || exit 9
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
sbatch -N2 -n4 -o two --wrap 'mpirun.openmpi ./hello | sort; echo rc $?'; settle; cat two
sbatch -N3 -n6 -o three -e three.err --wrap 'mpirun.openmpi bash -c "[ \$OMPI_COMM_WORLD_RANK != 4 ] || exit 3" 2>/dev/null; echo rc $?'; settle; cat three
sbatch -N1 -n4 -o one --wrap 'mpirun.openmpi -n 2 ./hello | sort'; settle; cat one
