# srun from a task: of the first node, under --overlap; the umask goes along.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n2 --mem=1000 -o out
umask 027; export SLURM_MEM_PER_NODE=10
srun -l bash -c 'umask' | sort
srun -N1 -n1 -w n1 bash -c 'srun --overlap -N2 -n2 bash -c "echo in \$SLURMD_NODENAME" | sort'
echo data | srun -N1 -n1 -w n1 bash -c 'srun --overlap -N1 -n1 cat'; umask 0; srun -n2 -o made.%t bash -c 'umask; echo x > created.$SLURM_PROCID'; stat -c '%a %n' made.* created.*
X
sbatch job.sh; settle; grep -v ^srun: out
