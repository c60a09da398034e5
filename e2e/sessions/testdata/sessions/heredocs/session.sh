# Text that goes to srun and comes from it.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2
srun -n1 bash <<'END'
echo "here $SLURM_PROCID"
END
srun -n1 python3 - <<END
import os; print("py", os.environ["SLURM_PROCID"])
END
srun -n1 cat <<< "a string"
x=$(srun -n1 echo value); echo "x $x"
y=$(srun bash -c 'echo $SLURM_PROCID' | sort | tr '\n' ' '); echo "y $y"
srun -n1 seq 1 20000 | tail -n1
srun -n1 bash -c 'seq 1 20000; exit 3' | wc -l; echo "${PIPESTATUS[0]}"
srun -n1 bash -c 'echo out; echo err >&2' 2> err > out; cat out err
{ srun -n1 echo grouped; srun -n1 echo twice; } | sort -r
srun -n1 printf 'no newline'; echo "|"
srun -n2 bash -c 'cat > got_$SLURM_PROCID' <<< shared; cat got_0 got_1
head -c 300000 /dev/zero | srun -n1 wc -c
srun -n1 head -c 300000 /dev/zero | wc -c
X
sbatch -W -o o j.sh > /dev/null; cat o
