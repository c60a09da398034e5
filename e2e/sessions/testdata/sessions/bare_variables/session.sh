# Without the variables of Slurm -w says how many nodes a step has.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -N3 -n3
show='echo "$SLURM_PROCID $SLURMD_NODENAME $SLURM_NNODES $SLURM_NTASKS"'
id=$SLURM_JOB_ID
for v in $(env | grep -o '^SLURM[^=]*' | grep -v CONF); do unset $v; done
export SLURM_JOB_ID=$id
for o in "" "-w n2" "-w n1,n3" "-n2 -w n2" "-n2 -w n1,n3" "-N1 -w n2" "-N2 -w n2" "-n4" "-N2" "-x n1" "-r1 -N2"; do
  echo "$o: $(srun -Q $o bash -c "$show" 2> /dev/null | sort | tr '\n' ';')"; sleep 0.3
done
X
sbatch -W -o out j.sh; cat out
