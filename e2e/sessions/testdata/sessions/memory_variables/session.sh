# What is said of memory.
show='echo "${SLURM_MEM_PER_NODE:-none} ${SLURM_MEM_PER_CPU:-none}"; srun -n1 bash -c "echo \${SLURM_MEM_PER_NODE:-none} \${SLURM_MEM_PER_CPU:-none}"'
for o in "" "--mem=200" "--mem=1G" "--mem-per-cpu=150" "--mem-per-cpu=1G" "--mem=0" "--mem=100K" "--mem=1500M -n2" "--mem-per-cpu=100 -c2" "-N2 --mem=300" "--exclusive" "--exclusive --mem=500"; do
  sbatch -W -o o $o --wrap="$show" > /dev/null; echo "$o: $(tr '\n' ';' < o)"
done
for o in "--mem=x" "--mem=-1" "--mem=1T" "--mem-per-cpu=5G"; do sbatch $o --wrap=true > /dev/null 2>&1; echo "$o: $?"; done
settle
