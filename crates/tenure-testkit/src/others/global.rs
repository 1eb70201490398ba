//! A candidate by the name that Erlang's `global` registers on all nodes that are connected.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use super::source;
use crate::monotonic;

/// Where all of them listen, each on a machine of its own: so they need no daemon that knows their ports.
const PORT: &str = "4370";

/// The command that starts the candidate of one of these machines, to be run there. It has no lease: how long nodes
/// that hear nothing of each other stay connected (`net_ticktime`) takes the place of a time to live. It ends
/// when its stdin is closed.
#[must_use]
pub fn candidate(machines: &[Ipv4Addr], number: usize, patience: Duration) -> Command {
    const START: &str = "{ok, Module, Code} = compile:file(hd(init:get_plain_arguments()), [binary]), \
                         {module, _} = code:load_binary(Module, \"\", Code), \
                         Module:main(tl(init:get_plain_arguments())).";
    let node = |number: usize| format!("node{number}@{}", machines[number]);
    let interface = machines[number].octets().map(|octet| octet.to_string()).join(",");
    let mut command = Command::new("erl");
    command.args(["-noshell", "-name", &node(number), "-setcookie", "bench"]);
    command.args(["-start_epmd", "false", "-erl_epmd_port", PORT]);
    command.args(["-kernel", "net_ticktime", &patience.as_secs().to_string()]);
    command.args(["inet_dist_use_interface", &format!("{{{interface}}}")]);
    command.args(["-eval", START, "-extra"]).arg(source("global_candidate.erl"));
    command.arg(monotonic::behind().as_nanos().to_string());
    command.args((0..machines.len()).map(node));
    command
}
