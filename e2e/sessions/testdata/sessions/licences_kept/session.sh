# A suspended job keeps its licenses; those of a waiting one can be changed.
# cluster: {conf: {Licenses: "foo:3,bar:1"}}
a=$(sbatch --parsable -L foo:3 -o /dev/null --wrap 'sleep 14'); sleep 3; scontrol suspend $a
b=$(sbatch --parsable -L foo:1 -o /dev/null --wrap 'sleep 8'); sleep 4; squeue -h -t PD -o '%T %r'
scontrol update jobid=$b licenses=bar:1; echo "rc $?"; sleep 4; squeue -h -o '%T %W' | sort; scontrol update jobid=$b licenses=nosuch; echo "rc $?"; scontrol resume $a; settle
c=$(sbatch --parsable -L foo:1,bar:1 -o c --wrap 'echo $SLURM_JOB_LICENSES'); settle; cat c
scontrol show licenses foo | sed 's/ Reserved.*//'; scontrol -o show lic | sed 's/ Reserved.*//'
