# Options with an empty value, and ones that nothing follows from here.
printf '#!/bin/bash\necho "${SLURM_JOB_NAME-none}"\n' > job.sh
n() { sbatch --parsable "$@" > id 2> err; echo "$* : $?"; settle; [ -s id ] && squeue -h -t all -j $(cat id) -o '%j|%T|%n|%P'; cat o 2> /dev/null; ls; rm -f o slurm-*.out; }
n --output= job.sh; n --error= -o o job.sh; n -o o --comment= job.sh; n -o o --mail-user= job.sh
n -o o -S 0 job.sh; n -o o -S1 job.sh; n -o o --core-spec=1 job.sh; n -o o --thread-spec=1 job.sh; n -o o --cluster-constraint=x job.sh; n -o o --partition= job.sh; n -o o --constraint= job.sh; n -o o --dependency= job.sh; n -o o --export= job.sh; n -o o --begin= job.sh; n -o o --nodelist= job.sh; n -o o --exclude= job.sh; n -o o --array= job.sh; n -o o --gres= job.sh; n -o o --licenses= job.sh; n -o o --qos= job.sh; n -o o --account= job.sh; n -o o --chdir= job.sh; n -o o --reservation= job.sh
printf '#!/bin/bash\n#SBATCH --wait\n#SBATCH -o o\nsleep 1; echo waited; exit 3\n' > w.sh; sbatch w.sh > /dev/null; echo "wait $? $(cat o)"
for a in '1-1#' '1#' '1-2x' '1,2;' '1 2' '1:2' '1-3:0'; do sbatch -H -a "$a" --wrap true > /dev/null 2>&1; echo "array $a $?"; done
for x in 'n1, n2' 'n1,n2,' 'n1 n2' ',n1' 'n[1, 2]'; do sbatch -H -x "$x" --wrap true > /dev/null 2>&1; echo "exclude $x $?"; sbatch -H -w "$x" --wrap true > /dev/null 2>&1; echo "nodelist $x $?"; done
printf '#!/bin/bash\n#SBATCH -J a#b -n2\n#SBATCH --ntasks=3# -c2\n#SBATCH -o o --comment=x"#y"z#w\n#SBATCH --mem=10\\#\necho "$SLURM_JOB_NAME $SLURM_NTASKS ${SLURM_CPUS_PER_TASK:-none}"\n' > h.sh; sbatch h.sh > id 2>&1; echo "hash $?"; sed -i '/mem=/d' h.sh; n h.sh
scancel -u root; settle
