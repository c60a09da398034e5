# sbatch --overcommit: how many CPUs a job gets, and which tasks its variables say.
cat > job.sh <<'END'
#!/bin/bash
echo "$1: tpn $SLURM_TASKS_PER_NODE cpus $SLURM_JOB_CPUS_PER_NODE n ${SLURM_NTASKS:-none} N $SLURM_NNODES cpt ${SLURM_CPUS_PER_TASK:-none} pn ${SLURM_NTASKS_PER_NODE:-none} oc ${SLURM_OVERCOMMIT:-none}"
srun bash -c 'echo $SLURM_PROCID@$SLURM_NODEID $SLURM_TASKS_PER_NODE' | sort -n
srun -n2 bash -c 'echo $SLURM_PROCID@$SLURM_NODEID $SLURM_TASKS_PER_NODE' | sort -n
END
i=0
while read words; do
  i=$((i+1))
  sbatch -O $words -o $i.txt job.sh "$words" > /dev/null
  settle
done <<'END'
-n6
-N2 -n6
-N2 -n5
-N3 -n8 -c2
-N2 -n7 --ntasks-per-node=4
-N2 --ntasks-per-node=3
-N4
-N2 -n9 --exclusive
-N2 -n3 -c3
-n20
-N1 -n5 -c2
-N3 -n7 -m cyclic
-N3 -n7 -m plane=3
-c3
-N2 -n1
-N2 -n6 --exclusive
-N3 -n4 --exclusive
END
