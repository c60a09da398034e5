# The tests on a real Kubernetes, as ctest knows them: run-tests calls ctest for the folder
# BUILD/kubernetes-tests, whose test file sets `build` and includes this one.
#
#   images ──────────┐
#   control-plane ─┬─┴▶ nodes ──────────┬─▶ chart ─▶ in lanes ─▶ one-lane ─▶ alone, one by one
#                  └▶ contract ─▶ no-crds ┴─▶ jobset, mpi-operator, kueue, pod-groups ─▶ JobSets, MpiJobs, Kueue, PodGroups (in lanes)
#
# What others need is a fixture; what only comes after them is a dependency. A test takes a lane, which
# is a resource (run-tests names the lanes): three nodes that no other test touches meanwhile.
# KUBEGANG_TEST_FILTER is GoogleTest's; with it there is no contract suite.

cmake_minimum_required(VERSION 3.25)

# Suites that act on what all tests share: the control plane, the operators, the release, the agents'
# DaemonSet. Each runs by itself, in this order, after all others. Their fixture (Alone, tests/harness.h)
# fails the tests of a suite that is not named here; all other suites run in lanes.
set(alone WholeCluster ManyAgents FinishedJobs MpiScripts Upgrade Uninstall)
# Suites whose tests share two gangs (tests/two_gangs.h): one program runs them all. In the other suites
# each test is a program run of its own.
set(shared Rotation WholeCluster Upgrade)
# A test of this suite takes away, for a moment, what another one of it needs.
set(one_at_a_time Admission)
# What else suites need: NAME is a fixture, and NAME-up the step that sets it up.
set(needed_by_JobSets jobset)
set(needed_by_MpiJobs mpi-operator)
set(needed_by_Kueue kueue)
set(needed_by_PodGroups pod-groups)
set(needed_by_Devices device-plugin)
set(needed_by_Admission jobset mpi-operator pod-groups)  # it tries the examples
# Suites that a usual run leaves out: only with KUBEGANG_LONG, or if the filter names them. The programs of the first take
# many minutes to build, the image of the second is large, the third needs other nodes (make e2e-image-volume).
set(left_out Kueue MpiScripts ImageVolumes)
# Begun first, so that the lanes end at about the same time.
set(long Rotation Backfill Nodes.ANodeThatIsPoweredOff Nodes.ANodeThatIsNotReady BadManifests LaunchOfAPartialGang)

# The tests of a program that the filter picks, as Suite.Test.
function(names_of program filter result)
  execute_process(COMMAND ${program} --gtest_list_tests --gtest_filter=${filter}
                  OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE " *#[^\n]*" "" listed "${listed}")
  string(REPLACE "\n" ";" lines "${listed}")
  set(names)
  foreach(line IN LISTS lines)
    if(line MATCHES "^[^ ].*\\.$")
      set(suite ${line})
    elseif(line MATCHES "^ +(.+)$")
      list(APPEND names ${suite}${CMAKE_MATCH_1})
    endif()
  endforeach()
  set(${result} ${names} PARENT_SCOPE)
endfunction()


# property(TEST NAME VALUE…)   one property, whose values are a list
function(property test name)
  set_tests_properties(${test} PROPERTIES ${name} "${ARGN}")
endfunction()

# add(NAME LABEL COMMAND…)   a test of ctest
function(add name label)
  add_test(${name} ${ARGN})
  property(${name} LABELS ${label})
  property(${name} TIMEOUT 900)
endfunction()

set(filter "$ENV{KUBEGANG_TEST_FILTER}")
set(tests ${build}/tests/kubernetes_tests)
set(contract ${build}/tests/api_server_contract_test)
set(kubeconfig $ENV{KUBEGANG_CLUSTER_DIR}/pki/admin.kubeconfig)

add(images step ${here}/make-images ${build})
property(images FIXTURES_SETUP images)
add(control-plane step ${here}/control-plane-up)
property(control-plane FIXTURES_SETUP control_plane)
add(nodes step ${here}/nodes-up)
property(nodes FIXTURES_SETUP nodes)
property(nodes FIXTURES_REQUIRED images control_plane)
add(chart step ${here}/install-chart)
property(chart FIXTURES_SETUP chart)
property(chart FIXTURES_REQUIRED nodes)

# The contract suite needs no node, and no chart, whose operator and policies would have a say.
set(of_contract)
if(filter STREQUAL "")
  set(filter *)
  names_of(${contract} "*Real*" of_contract)
  foreach(test IN LISTS of_contract)
    add(${test} contract ${contract} --gtest_filter=${test})
    property(${test} FIXTURES_REQUIRED control_plane)
    property(${test} ENVIRONMENT KUBEGANG_CONTRACT_KUBECONFIG=${kubeconfig})
  endforeach()
  add(no-crds step kubectl --kubeconfig ${kubeconfig} delete crd --all --wait)
  property(no-crds FIXTURES_REQUIRED control_plane)
  property(no-crds DEPENDS ${of_contract})
  property(chart DEPENDS no-crds)
endif()

# ctest's tests, and of each that is a whole suite the tests in it.
names_of(${tests} ${filter} names)
if(filter STREQUAL "*" AND "$ENV{KUBEGANG_LONG}" STREQUAL "")
  foreach(suite IN LISTS left_out)
    list(FILTER names EXCLUDE REGEX "^${suite}\\.")
  endforeach()
endif()
set(in_lanes)
set(by_themselves)
foreach(name IN LISTS names)
  string(REGEX REPLACE "\\..*" "" suite ${name})
  set(test ${name})
  if(suite IN_LIST shared)
    set(test ${suite})
  endif()
  list(APPEND picked_of_${test} ${name})
  if(suite IN_LIST alone)
    list(APPEND alone_of_${suite} ${test})
    list(APPEND by_themselves ${test})
  else()
    list(APPEND in_lanes ${test})
  endif()
endforeach()
list(REMOVE_DUPLICATES in_lanes)

function(add_gtest test label)
  list(JOIN picked_of_${test} ":" picked)
  add(${test} ${label} ${tests} --gtest_filter=${picked})
  if(picked STREQUAL test)
    property(${test} SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
endfunction()

set(made)
foreach(test IN LISTS in_lanes)
  string(REGEX REPLACE "\\..*" "" suite ${test})
  set(needed ${needed_by_${suite}})
  foreach(fixture IN LISTS needed)
    if(NOT fixture IN_LIST made)
      add(${fixture} step ${here}/${fixture}-up)
      property(${fixture} FIXTURES_SETUP ${fixture})
      property(${fixture} FIXTURES_REQUIRED control_plane)
      if(of_contract)
        property(${fixture} DEPENDS no-crds)
      endif()
      list(APPEND made ${fixture})
    endif()
  endforeach()
  add_gtest(${test} lane)
  property(${test} RESOURCE_GROUPS lanes:1)
  property(${test} FIXTURES_REQUIRED chart ${needed})
  foreach(suite IN LISTS one_at_a_time)
    if(test MATCHES "^${suite}\\.")
      property(${test} RESOURCE_LOCK ${suite})
    endif()
  endforeach()
endforeach()

# The commands of the guide and the examples, after all that needs the gangs of before and before the chart goes.
set(typed)
if(filter MATCHES "^(\\*|Guide)$")
  list(APPEND typed guide)
endif()
if(filter MATCHES "^(\\*|Examples)$")
  list(APPEND typed examples)
endif()

if(by_themselves OR typed)
  add(one-lane step ${here}/one-lane)
  property(one-lane FIXTURES_SETUP one_lane)
  property(one-lane FIXTURES_REQUIRED chart)
  property(one-lane DEPENDS ${in_lanes})
  set(before)
  foreach(suite IN LISTS alone)
    if(suite STREQUAL "Uninstall")
      foreach(script IN LISTS typed)
        add(${script} alone ${here}/run-${script} ${build})
        property(${script} RUN_SERIAL ON)
        property(${script} FIXTURES_REQUIRED one_lane)
        property(${script} DEPENDS ${before})
        list(APPEND before ${script})
      endforeach()
    endif()
    list(REMOVE_DUPLICATES alone_of_${suite})
    foreach(test IN LISTS alone_of_${suite})
      add_gtest(${test} alone)
      property(${test} RUN_SERIAL ON)
      property(${test} FIXTURES_REQUIRED one_lane)
      property(${test} DEPENDS ${before})
      property(${test} ENVIRONMENT KUBEGANG_TEST_ALONE=yes)
      list(APPEND before ${test})
    endforeach()
  endforeach()
endif()

foreach(test IN LISTS in_lanes of_contract)
  foreach(pattern IN LISTS long)
    if(test MATCHES "${pattern}")
      property(${test} COST 100)
    endif()
  endforeach()
endforeach()
