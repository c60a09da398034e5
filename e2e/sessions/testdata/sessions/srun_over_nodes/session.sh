# srun -O with and without -n, -N, -c, -m: how many tasks go where, and in which order.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(srun -Q "$@" bash -c 'echo $SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID' 2>/dev/null | sort -n | tr '\n' ' ')"; sleep 0.3; }
echo "$SLURM_JOB_CPUS_PER_NODE"
d -O; for n in 2 3 4 6 7 9; do d -O -n$n; done
for n in 3 6; do d -O -n$n -N1; d -O -n$n -N2; d -O -n$n -c2; done
d -O -n6 --ntasks-per-node=3; d -O --ntasks-per-node=2; d -n6 -O --exact; d --overlap -n6; d --overlap -n9
X
for o in "-n2" "-N2 -n2" "-N2 -n4" "-N2 -n5" "-N3 -n6" "-N3 -n7" "-N2 -n2 -c2" "-N2 -n8"; do sbatch -W $o -o out job.sh > /dev/null; echo "== $o"; cat out; done
