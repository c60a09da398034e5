# Licenses of a job that waits are changed; a choice is refused.
# cluster: {conf: {Licenses: "foo:3,bar:1"}}
a=$(sbatch --parsable -L foo:3 -o /dev/null --wrap 'sleep 16'); b=$(sbatch --parsable -L foo:1 -o /dev/null --wrap 'sleep 9'); c=$(sbatch --parsable -L bar:1 -o /dev/null --wrap 'sleep 12'); sleep 4
squeue -h -o '%T %r %W' | sort
for l in foo:9 nosuch 'foo:1|bar:1' foo:x foo:2,bar:9 foo:2 ''; do scontrol update jobid=$b licenses="$l" > /dev/null 2>&1; echo "waiting $l: $?"; done
scontrol update jobid=$a licenses=nosuch > /dev/null 2>&1; echo "running nosuch: $?"
sleep 4; squeue -h -o %T | sort; scontrol -o show lic | sed 's/ Reserved.*//'; settle
for o in '-L foo:1|bar:1' '-L foo|bar' '-L foo:1 -L bar:1' '-L foo:1,bar:9' '-L foo:1,,bar:1' '-L foo:01'; do sbatch $o -o /dev/null --wrap true > /dev/null 2>&1; echo "$o: $?"; settle; done
