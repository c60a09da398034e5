# srun -x where nobody says how many nodes: which tasks are where.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(timeout 20 srun -Q "$@" bash -c 'echo $SLURM_PROCID@$SLURMD_NODENAME' 2>/dev/null | sort -n | tr '\n' ' ')"; sleep 0.3; }
d -x n1; for n in 1 2 3 4 6; do d -x n1 -n$n; d -x n1,n3 -n$n; done; d -x n1 -N2; d -x n1 -N1 -n2; d -x n1 -N1-2 -n2; d -x n1 -w n2 -n1; d -x n1 -w n2; d -x n1 -r1 -n1; d -x n1 --ntasks-per-node=1; d -x n1 -c1; d -x n1 -O -n4
X
for o in "-N3 -n3" "-N3 -n6" "-N3" "-N2 -n2" "-N3 --ntasks-per-node=2"; do sbatch -W $o -o out job.sh > /dev/null; echo "== $o"; cat out; done
