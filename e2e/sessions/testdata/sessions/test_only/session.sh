# What would become of a job that is only asked about: nothing of it runs, and no file of it is written.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -n 4 -t 10
echo ran
X
place() { sed -n 's/^sbatch: Job [0-9]* to start at [-0-9]*T[:0-9]* using/using/p; s/^allocation failure: .*/it fails/p'; }
ask() { sbatch --test-only "$@" 2> said; echo "exit code $?"; place < said; rm -f said; }
ask job.sh
ask -N 2 -n 4 -t 120 --wrap true
ask -p long --array=1-3 job.sh
ask --parsable job.sh
squeue -h
sbatch -N 4 --exclusive -t 5 --output=/dev/null --wrap 'sleep 5'
ask -p main,long job.sh
ask -H job.sh
ask -b now+1hour job.sh
ask --mem 999999 job.sh
ask -C gpu job.sh
ask -w n9 job.sh
scancel -u root
settle
ls
