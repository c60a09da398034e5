# srun --ntasks-per-node beside a number of tasks of the job's.
cat > job.sh <<'END'
#!/bin/bash
for words in --ntasks-per-node={1..4} "-O --ntasks-per-node=3" "--ntasks-per-node=3 -n3" "--ntasks-per-node=2 -n4" "-n3 --ntasks-per-node=2 --overlap" "-O -n5 --ntasks-per-node=2"; do
  echo "== $words"
  srun $words bash -c 'echo $SLURM_PROCID@$SLURM_NODEID $SLURM_TASKS_PER_NODE' 2>&1 | sort -n
done
END
i=0
while read words; do
  i=$((i+1))
  sbatch $words -o $i.txt job.sh > /dev/null
  settle
done <<'END'
-N2 -n3
-N2 -n4
-N2
-n3
-N3 -n3
END
