# scontrol show job of ended jobs: state, exit code, reason.
sbatch -o /dev/null --wrap 'exit 3'; sbatch -o /dev/null --wrap 'kill -9 $$'; sbatch -o /dev/null --wrap true; sbatch -o /dev/null --wrap 'sleep 60'; sleep 3; scancel 1004; sbatch -H -o /dev/null --wrap true; scancel 1005
sbatch -o /nonexistent/x --wrap true; sbatch -o /dev/null --wrap 'kill -TERM $$'; sbatch -o /dev/null --wrap 'srun bash -c "exit 4"'; settle
for i in 1001 1002 1003 1004 1005 1006 1007 1008; do scontrol show job $i | grep -oE '(JobState|ExitCode|Reason)=[^ ]*' | tr '\n' ' '; echo; done; squeue -h -t all -o '%i %T %r' | sort
