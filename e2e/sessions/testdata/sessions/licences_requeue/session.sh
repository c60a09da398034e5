# A job that is requeued gives its licenses back.
# cluster: {conf: {Licenses: "foo:2", SchedulerParameters: "bf_interval=1,sched_interval=1,batch_sched_delay=0,bf_resolution=1"}}
a=$(sbatch --parsable --requeue -L foo:2 -o /dev/null --wrap 'sleep 10'); sleep 3
b=$(sbatch --parsable -L foo:1 -o /dev/null --wrap 'sleep 6'); sleep 2; squeue -h -j $b -o '%T %r'
scontrol requeue $a; sleep 5; squeue -h -j $b -o '%T'; scontrol -o show lic | sed 's/ Reserved.*//'; scancel $a; settle
scontrol -o show lic | sed 's/ Reserved.*//'
