# salloc --no-shell: a job that is kept for srun.
salloc -Q --no-shell -n2 -J kept; echo "rc $?"; id=$(squeue -h -n kept -o %i)
srun --jobid=$id -n1 echo "in the kept one"; srun --jobid $id -n1 bash -c 'exit 4' 2> /dev/null; echo "rc $?"; SLURM_JOB_ID=$id srun -n1 echo "by its variable"
squeue -h -j $id -o '%T %j %C'; scancel $id; settle; squeue -h -t all -j $id -o %T
salloc --no-shell -n1 -J more 2> said; echo "rc $?"; sed 's/[0-9][0-9]*/N/' said; id=$(squeue -h -n more -o %i); scancel $id; settle
salloc -Q --no-shell -n1 touch made; echo "rc $?"; ls made 2> /dev/null; scancel -u root; settle
salloc -Q --no-shell -p nosuch 2> /dev/null; echo "rc $?"; salloc -Q --no-shell=x 2> /dev/null; echo "rc $?"
SALLOC_NO_SHELL=1 salloc -Q -n1 true; echo "rc $?"; squeue -h -t all -S i -o '%T'
