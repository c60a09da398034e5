# The CPUs of a job and of its script, on one node and on several.
# cluster: {accounting: true, conf: {JobAcctGatherType: jobacct_gather/linux}}
sbatch -J even -N2 -n4 -o /dev/null --wrap true; settle; sbatch -J uneven -n7 -o /dev/null --wrap true; settle; sbatch -J wide -N3 --ntasks-per-node=1 -c3 -o /dev/null --wrap true; settle; sbatch -J whole --exclusive -N2 -o /dev/null --wrap true; settle; sbatch -J one -c2 -o /dev/null --wrap true; sbatch -J memory -N2 --mem=700 -o /dev/null --wrap true; settle; sleep 3
sacct -P -n -o jobid,alloccpus,ncpus,allocnodes,nnodes,ntasks; sacct -P -n -o jobid,alloctres; sacct -X -P -n -o jobid,reqcpus,reqnodes,reqtres,reqmem; sacct -P -n -o jobid,reqcpus,reqnodes
