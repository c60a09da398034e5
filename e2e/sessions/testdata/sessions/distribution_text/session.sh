# SLURM_DISTRIBUTION of jobs and of steps.
for m in none block cyclic block:cyclic '*:fcyclic' '*' block:block:cyclic block,pack cyclic:block,nopack '*:*:*' 'block:*:fcyclic' Cyclic ':block'; do
  [ "$m" = none ] && o= || o="-m $m"
  set -f; sbatch -W -o o -N2 -n2 $o --wrap='echo "$SLURM_DISTRIBUTION $SLURM_DIST_PLANESIZE"; srun bash -c "[ \$SLURM_PROCID = 1 ] || echo \$SLURM_DISTRIBUTION"' > /dev/null; echo "$m: $? $(tr '\n' ' ' < o)"; set +f
done
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n4
for m in '*' '*:*' 'block:fcyclic:*' 'block:' 'BLOCK' '::' 'block,foo' 'plane=2,pack' 'a:b:c:d' fcyclic 'plane=x' 'cyclic,Pack'; do
  echo "$m: $(srun -Q -n2 -N2 -m "$m" bash -c '[ $SLURM_PROCID = 1 ] || echo $SLURM_DISTRIBUTION' 2> /dev/null)"
done
X
sbatch -W -o o j.sh; cat o
