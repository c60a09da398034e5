# Each task of an array takes its own licenses.
# cluster: {conf: {Licenses: "foo:2,bar:1"}}
a=$(sbatch --parsable -a 0-3 -L foo:1 -o /dev/null --wrap 'sleep 6'); sleep 4
squeue -h -r -o '%T %r' | sort; scontrol -o show lic | sed 's/ Reserved.*//'
settle; sbatch -a 0-1 -L foo:3 -o /dev/null --wrap true > /dev/null 2>&1; echo "rc $?"
b=$(sbatch --parsable -a 0-1%1 -L bar:1 -o b%a --wrap 'echo $SLURM_JOB_LICENSES'); settle; cat b0 b1
scontrol -o show lic | sed 's/ Reserved.*//'
