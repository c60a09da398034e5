# How many CPUs squeue shows of jobs that overcommit, or have their nodes alone: held, and when they have ended.
echo '#!/bin/bash' > job.sh
while read words; do
  id=$(sbatch --parsable -H $words -o /dev/null job.sh)
  echo "$words: $(squeue -h -r -j $id -o '%T %D %C' | sort -u | tr '\n' ' ')"
  scontrol release $id; settle
  echo "$words: $(squeue -h -r -t all -j $id -o '%T %D %C' | sort -u | tr '\n' ' ')"
done <<'END'
-O -n6
-O -N2 -n6
-O -N2 -n3 -c3
-O -c3
-O -N2 --ntasks-per-node=3
-O -N2 --mincpus=2
-O -N2 -n6 --exclusive
--exclusive -N2 -n4
--exclusive -n3
--exclusive -N2 -n4 -a 0-1
-O -N2 -n6 -a 0-1
END
