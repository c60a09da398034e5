# Steps with more tasks than CPUs: which variables tasks see, and where they are.
# unordered: one.txt two.txt three.txt over.txt
cat > show <<'END'
#!/bin/bash
echo "$1: $SLURM_PROCID@$SLURM_NODEID tpn $SLURM_TASKS_PER_NODE step $SLURM_STEP_TASKS_PER_NODE nodes $SLURM_NNODES on $SLURM_CPUS_ON_NODE n $SLURM_NTASKS cpt ${SLURM_CPUS_PER_TASK:-none} oc ${SLURM_OVERCOMMIT:-none} d $SLURM_DISTRIBUTION"
END
cat > job.sh <<'END'
#!/bin/bash
echo "job: tpn $SLURM_TASKS_PER_NODE cpus $SLURM_JOB_CPUS_PER_NODE n ${SLURM_NTASKS:-none} oc ${SLURM_OVERCOMMIT:-none}"
srun -O -n 6 ./show six
srun -O -n 12 ./show twelve
srun --overcommit ./show plain
srun -O -n 3 ./show three
srun -O -n 5 -m cyclic ./show cyclic
srun -O -n 7 -c 2 ./show c2
srun -O -N1 -n 9 ./show one
srun -O --ntasks-per-node=3 ./show pern
srun -O -n 6 --exact ./show exact
srun -O -n 6 --overlap ./show overlap
srun -O -n 6 -m plane=4 ./show plane
srun -O -n 6 -m pack ./show pack
END
chmod +x show
sbatch -N1 -n1 -o one.txt job.sh > /dev/null
settle
sbatch -N2 -n3 -o two.txt job.sh > /dev/null
settle
sbatch -N3 -o three.txt job.sh > /dev/null
settle
sbatch -N2 -n6 -O -o over.txt job.sh > /dev/null
settle
