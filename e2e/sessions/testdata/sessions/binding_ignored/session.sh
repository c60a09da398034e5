# What is asked of a topology and of cores near a device, where there is neither.
for o in --switches=1@x --switches=1@ --switches=1 --switches=1@10:00 --switches=2@1-0 --switches=0 --switches=x --switches= --gres-flags=enforce-binding --gres-flags=disable-binding --gres-flags=x; do
  sbatch -H -n1 -o o $o --wrap 'env | grep -iE "switch|gres" | sort' > id 2> err; c=$?
  echo "$o: $c"
  j=$(grep -oE '[0-9]+$' id) && { scontrol show job $j | grep -oE '(ReqSwitch|Reason)=[^ ]*' | tr '\n' ' '; scontrol release $j; }
  [ -n "$j" ] && { while squeue -h -j $j 2>/dev/null | grep -q .; do sleep 0.3; done; cat o; scontrol show job $j | grep -oE '(JobState|ReqSwitch)=[^ ]*' | tr '\n' ' '; echo; }
done
printf '#!/bin/sh\n#SBATCH --switches=1@5\n#SBATCH --gres-flags=enforce-binding\n#SBATCH -N2\nsrun -l --switches=1 --gres-flags=enforce-binding echo up | sort\n' > j.sh
sbatch -W -o o2 j.sh > /dev/null; echo $?; cat o2
srun --switches=1@2 -n2 echo hi; echo $?
srun --gres-flags=enforce-binding -n1 echo hi; echo $?
SBATCH_GRES_FLAGS=enforce-binding sbatch -W -o o3 --wrap 'echo here' > /dev/null; echo $?; cat o3
SBATCH_REQ_SWITCH=1 SBATCH_WAIT4SWITCH=10 sbatch -W -o o4 --wrap 'echo here' >/dev/null; echo $?; cat o4
squeue -h -o '%i'
