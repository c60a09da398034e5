# Input: to all, to one, from a file, none; more than buffers hold.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n2 -o out
printf 'one\ntwo\n' | srun -l cat | sort; printf 'three\n' | srun -i 1 -l cat; echo four > in; srun -i in -l cat | sort; echo five | srun -i none -l cat; echo "rc $?"
srun -n2 bash -c 'echo "$SLURM_PROCID $(cat)"' < in | sort; 
while read x; do echo "line $x"; srun -n1 -N1 true < /dev/null; done < <(seq 3); head -c 20000000 /dev/zero | srun -n1 -N1 cat | wc -c; head -c 3000000 /dev/zero | srun cat | wc -c
seq 5 | srun -n1 -N1 head -n1; echo "rc ${PIPESTATUS[1]}"
X
sbatch job.sh; settle; grep -v ^srun: out
