# sbatch --wait ends as the job does.
for w in true false 'exit 7' 'kill -9 $$' 'kill -TERM $$' 'srun false' 'srun bash -c "exit 12"'; do sbatch -W -o /dev/null --wrap="$w"; echo "$w: $?"; done
sbatch -W -Q -o /dev/null --wrap='exit 2'; echo $?
sbatch --wait --parsable -o /dev/null -a 1-2 --wrap='exit $((SLURM_ARRAY_TASK_ID * 3))'; echo $?
sbatch -W -o /dev/null --wrap='scancel $SLURM_JOB_ID; sleep 10'; echo $?
sbatch -W -o missing/x --wrap=true; echo $?
