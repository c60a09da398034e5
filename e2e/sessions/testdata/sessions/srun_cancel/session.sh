# A job on two nodes is canceled: all tasks hear of it, and what they say last is shown.
# unordered: out.txt
# compare: stdout
sbatch -N2 -o out.txt --wrap 'srun -l bash -c "trap \"echo term; exit 3\" TERM; sleep 60 & wait"'; sleep 4; scancel 1001; settle; grep -o '[01]: term' out.txt | sort; scontrol show job 1001 | grep -oE 'JobState=\S+'
