# Open MPI directly by srun with PMIx: over nodes, on one, several at once; ends, aborts, kinds.
# needs: mpicc.openmpi
export OMPI_MCA_btl=self,tcp
mpicc.openmpi -o ends ends.c || exit 9
sbatch -N3 -n6 -o three --wrap 'srun --mpi=pmix ./ends | sort; echo rc $?'; settle; cat three
sbatch -N2 -n4 -o two --wrap 'srun --mpi=pmix_v4 -m cyclic ./ends | sort; SLURM_MPI_TYPE=pmix srun -n3 ./ends | sort; srun --mpi=pmix -n1 ./ends'; settle; cat two
sbatch -N1 -n4 -o one --wrap '(srun --mpi=pmix -n2 --exact ./ends & srun --mpi=pmix -n2 --exact ./ends; wait) | sort; srun --mpi=pmix bash -c "echo \$PMIX_RANK \$PMIX_NAMESPACE \$SLURM_MPI_TYPE" | sort'; settle; cat one
sbatch -N2 -n4 -o exit --wrap 'srun --mpi=pmix ./ends exit >/dev/null 2>&1; echo exit $?; srun --mpi=pmix ./ends abort >/dev/null 2>&1; echo abort $?'; settle; cat exit
sbatch -N1 -n3 -o leave --wrap 'srun --mpi=pmix ./ends leave >/dev/null 2>&1; echo leave $?; srun --mpi=pmix_v3 ./ends >/dev/null 2>&1; echo kind $?; srun --mpi=pmix true; echo true $?'; settle; cat leave
rm -f ends
