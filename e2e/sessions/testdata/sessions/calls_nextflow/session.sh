# Nextflow's calls: its script's head, the queue that it asks for, and how it ends tasks.
# compare: stdout
head_of() { printf '#!/bin/bash\n#SBATCH -J nf-%s\n#SBATCH -o %s/.command.log\n#SBATCH --no-requeue\n#SBATCH --signal B:USR2@30\n#SBATCH -c 1\n#SBATCH -t 00:10:00\n#SBATCH --mem 200M\n#SBATCH -p main\n' "$1" "$PWD"; }
number() { grep -oE '[0-9]+$'; }
queue() { squeue --noheader -o '%i %t' -t all -p main -u "$(id -un)" | sort; }
mkdir -p work/ab work/cd work/ef
(cd work/ab; { head_of 'hello_(1)'; printf 'trap "echo told; exit 143" USR2\necho hello > out.txt\necho 0 > .exitcode\n'; } > .command.run; sbatch .command.run)
settle; cat work/ab/out.txt work/ab/.exitcode work/ab/.command.log
long=$(cd work/cd; { head_of 'sleeps_(2)'; printf 'sleep 300\n'; } > .command.run; sbatch .command.run | number)
held=$(cd work/ef; { head_of 'held_(3)'; printf 'true\n'; } > .command.run; sbatch -H .command.run | number)
for i in 1 2 3 4 5 6 7 8 9 10; do squeue --noheader -o '%t' -j $long | grep -q R && break; sleep 1; done
queue
scancel $long $held; echo $?
settle; queue
scancel 99999; echo $?
