# Which nodes a step gets: -N, -w, -r, -x, and what does not go together.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N4 --ntasks-per-node=1 -o out
where() { srun -Q "$@" bash -c 'echo $SLURMD_NODENAME' 2>&1 | sort | tr '\n' ' '; echo "rc ${PIPESTATUS[0]}"; }
where; where -N1 -n1; where -N2 -n2; where -N2; where -n3; where -w n3 -N1 -n1; where -w n[2,4] -n2 -N2
where -r1 -N1 -n1; where -r2 -N2 -n2; where -r2; where -x n1 -N2 -n2; where -x n1,n2 -N1 -n1; where --exclude=n[1-3] -n1 -N1
where -w n2 -N2 -n2; where --nodes=2-3 -n3; where --nodelist=n1,n1 -n1 -N1
X
sbatch job.sh; settle; cat out
