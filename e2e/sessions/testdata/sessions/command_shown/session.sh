# The script that scontrol names.
mkdir -p d; printf '#!/bin/sh\nscontrol show job $SLURM_JOB_ID | grep Command=\n' > d/job.sh; cp d/job.sh .; chmod +x job.sh
c() { scontrol show job ${1#*job } | grep -o 'Command=.*'; }
c "$(sbatch -H -o /dev/null job.sh)"; c "$(sbatch -H -o /dev/null d/job.sh a 'b c')"; c "$(sbatch -H -o /dev/null --wrap true)"; c "$(sbatch -H -o /dev/null < job.sh)"
c "$(sbatch -H -o /dev/null ./d/../job.sh)"; c "$(sbatch -H -o /dev/null -D /tmp $PWD/d/job.sh)"; c "$(sbatch -H -o /dev/null -D /tmp job.sh)"; c "$(sbatch -H -a 1-2 -o /dev/null job.sh x | head -n1)"
(cd d; c "$(sbatch -H -o /dev/null job.sh)"; PATH=$PWD:$PATH; cd ..; rm job.sh; c "$(sbatch -H -o /dev/null job.sh)")
scancel -u root
