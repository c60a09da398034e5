// Carries the precompiled headers (Kubegang.cmake).
