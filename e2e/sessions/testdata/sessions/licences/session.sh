# Licenses: taken, shown, waited for, refused.
# cluster: {conf: {Licenses: "foo:3,bar:1"}}
a=$(sbatch --parsable -L foo:2 -o /dev/null --wrap 'sleep 12'); b=$(sbatch --parsable -L bar:1,foo:2 -o /dev/null --wrap 'sleep 2'); c=$(sbatch --parsable -L bar:1 -o /dev/null --wrap 'sleep 12'); sleep 5
squeue -h -o '%T %r %W' | sort; scontrol show lic | sed 's/ Reserved.*//'; scontrol show job $b | grep Licenses | sed 's/ Network.*//'
squeue -h -L foo:2 -o %T 2> /dev/null; settle
for options in '-L foo:4' '-L nosuch' '-L foo:0' '-L foo:-1' '-L foo:x' '-L foo,foo' '-L foo=2' '-L foo;bar' '-L foo|bar' '-L ,' '--licenses=bar:1'; do
  sbatch $options -o /dev/null --wrap true > /dev/null 2>&1; echo "$options: $?"; settle; done
