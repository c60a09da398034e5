# Options that scripts set about binding and memory, and others that change nothing for a script.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N1 -n2 -c2 -o out
r() { timeout 20 srun -Q "$@" true > /dev/null 2>&1; echo "$* rc $?"; }
for b in none cores threads sockets rank verbose,cores quiet; do r --cpu-bind=$b; r --cpu_bind=$b; done
for b in none local; do r --mem-bind=$b; done
r --hint=nomultithread; r --hint=compute_bound; r --mem=100; r --mem-per-cpu=10; r --propagate=ALL; r --propagate; r --distribution=block:cyclic; r -X; r -k; r --no-kill; r --comment=x; r --threads-per-core=1; r --gres=none; r --acctg-freq=10; r --profile=none; r --msg-timeout=10; r --quit-on-interrupt; r --preserve-env; r --mail-type=END; r --nice=5; r --contiguous; r --mincpus=1; r --tasks-per-node=2; r --use-min-nodes; r --spread-job; r -E; r --wckey=x; r -t 5; r --time=1:00:00; r --ntasks-per-core=1; r --cpu-freq=high
X
sbatch job.sh; settle; cat out
