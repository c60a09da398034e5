# cluster: {conf: {MpiDefault: pmi2}}
# MpiDefault is the kind of all steps that name none.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2
show='echo "${PMI_RANK:-none} ${PMI_SIZE:-none} ${SLURM_MPI_TYPE:-none}"'
srun bash -c "$show" | sort
srun --mpi=none bash -c "$show" | sort
SLURM_MPI_TYPE=none srun bash -c "$show" | sort
srun --mpi=pmi2 bash -c "$show" | sort
X
sbatch -W -o o j.sh; cat o
