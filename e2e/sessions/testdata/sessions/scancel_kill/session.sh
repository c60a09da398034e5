# scancel with the signal KILL, of jobs, scripts and steps, with -b, -f and without, of jobs that wait, and of tasks.
r() { while ! [ -e up ]; do sleep 0.2; done; sleep 0.7; rm up; }
s() { settle; scontrol show job $1 | grep -oE 'JobState=[^ ]*'; }
work='srun -n1 bash -c "touch up; sleep 20"; echo "rc $?"; exit 5'
id=$(sbatch --parsable -o /dev/null --wrap "$work"); r; scancel -s KILL $id; echo $?; s $id
id=$(sbatch --parsable -o /dev/null --wrap "$work"); r; scancel -s 9 -b $id; echo $?; s $id; scontrol show job $id | grep -oE 'ExitCode=[^ ]*'
id=$(sbatch --parsable -o /dev/null --wrap "$work"); r; scancel -f -s SIGKILL $id; echo $?; s $id
id=$(sbatch --parsable -o /dev/null --wrap "$work"); r; scancel -s KILL -n wrap; echo $?; s $id
id=$(sbatch --parsable -o killed --wrap "$work"); r; scancel -s KILL $id.0; echo $?; s $id; grep rc killed
id=$(sbatch --parsable -H -o /dev/null --wrap true); scancel -s KILL $id; echo $?; s $id
id=$(sbatch --parsable -H -o /dev/null --wrap true); scancel -s KILL -b $id; echo $?; s $id; scancel -f -s KILL $id; echo $?
id=$(sbatch --parsable -a 1-2 -o /dev/null --wrap 'touch up; sleep 20'); r; scancel -s KILL ${id}_1; echo $?; scancel -s KILL $id; echo $?; settle; squeue -h -t all -j $id -o %T
scancel -s KILL $id; echo $?; scancel -s KILL 9999; echo $?
