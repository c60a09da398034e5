# srun takes the input of the loop that it stands in, unless it is told otherwise.
printf '1\n2\n3\n' > list
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2
while read n; do srun -n1 echo "a $n"; done < list
while read n; do srun -n1 --input=none echo "b $n"; done < list
while read n; do srun -n1 echo "c $n" < /dev/null; done < list
while read n; do srun -n1 -i /dev/null echo "d $n"; done < list
for n in $(cat list); do srun -n1 echo "e $n"; done
cat list | while read n; do srun -n1 cat; done
cat list | xargs -n1 srun -n1 echo f
srun -n2 -i 1 cat < list
srun -n1 wc -l < list
srun -n1 head -n1 < list
X
sbatch -W -o o j.sh; cat o
