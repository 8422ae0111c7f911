package sst_test

import _ "github.com/weft-fabric/weft/prov/shm" // so that streams of the tests share memory
