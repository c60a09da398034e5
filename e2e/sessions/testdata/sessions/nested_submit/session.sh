# Jobs that submit jobs.
cat > first.sh <<'X'
#!/bin/bash
#SBATCH -J first -n2
id=$(sbatch --parsable -J second -o second.txt --wrap='echo "second $SLURM_JOB_NAME $MARK $SLURM_SUBMIT_DIR"')
echo "submitted $?"
sbatch --parsable -d afterok:$SLURM_JOB_ID -o third.txt --wrap='echo third' > third.id
sbatch --parsable -d afternotok:$SLURM_JOB_ID -o never.txt --wrap='echo never' > never.id
exit 0
X
MARK=blue sbatch -o first.txt first.sh
for i in $(seq 40); do [ -e third.txt ] && break; sleep 0.5; done; sleep 1
squeue -h -t all -o '%j %T %r' -S i; scancel -u root; settle
sed "s#$PWD#HERE#" second.txt; cat third.txt; sort first.txt | grep -v never
