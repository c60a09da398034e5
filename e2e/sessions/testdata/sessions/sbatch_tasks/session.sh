# --ntasks-per-node beside -n and -N: how many tasks a step has, and where.
cat > job.sh <<'X'
#!/bin/bash
v() { echo "$* : $(srun -Q "$@" bash -c 'echo $SLURM_NODEID' 2>/dev/null | sort | uniq -c | tr -s ' \n' ' ')"; }
echo "N=$SLURM_JOB_NUM_NODES n=$SLURM_NTASKS pn=$SLURM_NTASKS_PER_NODE tpn=$SLURM_TASKS_PER_NODE cpus=$SLURM_JOB_CPUS_PER_NODE"
v; v -n2; v -N1; v -N1 -n1; v --ntasks-per-node=1; v --ntasks-per-node=2; v -N2 -n2
X
i=0; for o in "-N3 -n9 --ntasks-per-node=4" "-N2 -n4 --ntasks-per-node=2" "-n6 --ntasks-per-node=2" "-N2 --ntasks-per-node=3" "-N2 -n5 --ntasks-per-node=3" "-n5 --ntasks-per-node=4" "-N2 -n3 --ntasks-per-node=1" "-N4 -n4 --ntasks-per-node=1" "-N3 -n9 --ntasks-per-node=3" "-N2-3 -n6 --ntasks-per-node=2" "-n3 --ntasks-per-node=3"; do
  i=$((i+1)); sbatch -o o$i $o job.sh; settle; echo "$o"; cat o$i; done
