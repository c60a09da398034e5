# How many nodes -m pack takes where nothing says their number.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(timeout 20 srun -Q "$@" bash -c 'echo $SLURM_PROCID@$SLURM_NODEID' 2>/dev/null | sort -n | tr '\n' ' ')"; sleep 0.3; }
echo "$SLURM_JOB_CPUS_PER_NODE"
for n in 2 3 4 5 6 8; do d -m pack -n$n; done; d -m pack -c2 -n2; d -m pack --exact -n3; d -m pack -O -n9; d -m pack --ntasks-per-node=2 -n4
X
for o in "-N2 -n8" "-N3 -n9" "-N3 -n10" "-N3 -n6" "-N2 -n4 -c2" "-N3 -n3 -c3" "-N3 --exclusive -n5"; do sbatch -W $o -o out job.sh > /dev/null; echo "== $o"; cat out; done
