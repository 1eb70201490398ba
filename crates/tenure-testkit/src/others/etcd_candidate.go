// A candidate of etcd's own election (clientv3/concurrency, which `etcdctl elect` is made of), for benches:
// etcd_candidate ENDPOINT ELECTION ID TTL_SECONDS
// `mod.rs` has what it says, and what it can be told. `etcdctl elect` itself takes no TTL.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

const bootClock = 7

var leads int32

func now() int64 {
	var told syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, bootClock, uintptr(unsafe.Pointer(&told)), 0)
	return told.Nano()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	endpoint, name, id := os.Args[1], os.Args[2], os.Args[3]
	ttl, err := strconv.Atoi(os.Args[4])
	check(err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	check(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	check(err)
	orders := make(chan string)
	go read(orders, session)
	election := concurrency.NewElection(session, name)
	for {
		check(election.Campaign(context.Background(), id))
		atomic.StoreInt32(&leads, 1)
		fmt.Println("leads", now())
		if <-orders != "resign" {
			continue
		}
		called := now()
		atomic.StoreInt32(&leads, 0)
		check(election.Resign(context.Background()))
		fmt.Println("resigned", called)
		<-orders
	}
}

func read(orders chan string, session *concurrency.Session) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == "watch" {
			go watch(session)
		} else {
			orders <- lines.Text()
		}
	}
	os.Exit(0)
}

// Whoever uses it leads until it resigns, or its session is done.
func claims(session *concurrency.Session) bool {
	select {
	case <-session.Done():
		return false
	default:
		return atomic.LoadInt32(&leads) == 1
	}
}

func watch(session *concurrency.Session) {
	claimed := now()
	fmt.Println("watches")
	for asked := claimed; claims(session); asked = now() {
		claimed = asked
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ceased", claimed)
}
