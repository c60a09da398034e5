# Several options of memory at once: in one call, in a script, from the environment.
rc() { timeout 20 "$@" > /dev/null 2>&1 < /dev/null; echo "$* : rc $?"; }
printf '#!/bin/bash\n#SBATCH --mem=100\n#SBATCH --mem-per-cpu=50\ntrue\n' > both; printf '#!/bin/bash\n#SBATCH --mem-per-cpu=50\necho "${SLURM_MEM_PER_NODE:-none} ${SLURM_MEM_PER_CPU:-none}"\n' > one
printf '#!/bin/bash\n#SBATCH --mem=100\necho "${SLURM_MEM_PER_NODE:-none} ${SLURM_MEM_PER_CPU:-none}"\n' > node
rc sbatch --mem=100 --mem-per-cpu=50 --wrap true; rc sbatch --mem-per-cpu=50 --mem=100 --wrap true; rc sbatch both; rc sbatch --mem=100 both
for w in "--mem=200 one" "--mem-per-cpu=70 one" "--mem-per-cpu=70 node" "--mem=200 node"; do sbatch -W -o o $w > /dev/null 2>&1; echo "$w : $? $(cat o)"; rm -f o; done
export SBATCH_MEM_PER_CPU=60; for w in one node "--mem=200 one" "--mem=200 node"; do sbatch -W -o o $w > /dev/null 2>&1; echo "cpu $w : $? $(cat o)"; rm -f o; done; unset SBATCH_MEM_PER_CPU
export SBATCH_MEM_PER_NODE=300; for w in one node "--mem-per-cpu=70 one" "--mem-per-cpu=70 node"; do sbatch -W -o o $w > /dev/null 2>&1; echo "node $w : $? $(cat o)"; rm -f o; done; unset SBATCH_MEM_PER_NODE
rc srun --mem=100 --mem-per-cpu=50 true; rc salloc --mem=100 --mem-per-cpu=50 true
sbatch -W -o o --mem=200 --wrap='srun --mem=100 --mem-per-cpu=50 true; echo $?; srun --mem-per-cpu=50 true; echo $?' > /dev/null; grep -v '^srun' o
settle
