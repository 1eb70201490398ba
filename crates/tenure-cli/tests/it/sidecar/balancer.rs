//! The load balancer, with the configuration that `tenure config` prints.

use std::process::Command;
use std::time::Duration;

use super::cluster::{Cluster, HANG, Process, free_place};

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Nginx,
    Haproxy,
}

pub struct Balancer {
    /// Where it listens.
    pub at: String,
    _process: Process,
}

impl Balancer {
    pub async fn start(kind: Kind, cluster: &Cluster) -> Self {
        let (at, directory) = (free_place().await, cluster.directory.path());
        let file = directory.join("balancer.conf");
        let mut command = match kind {
            Kind::Nginx => {
                // Where it keeps things is the machine's own business.
                let places = format!(
                    "http {{\n access_log off;\n client_body_temp_path {0}/body;\n proxy_temp_path {0}/proxy;",
                    directory.display()
                );
                let text = cluster.configuration("nginx", &at).replacen("http {", &places, 1);
                std::fs::write(&file, text).unwrap();
                let main = format!(
                    "daemon off; master_process off; pid {}/nginx.pid; error_log stderr;",
                    directory.display()
                );
                let mut command = Command::new("nginx");
                command.arg("-p").arg(directory).arg("-c").arg(&file).args(["-e", "stderr", "-g", &main]);
                command
            }
            Kind::Haproxy => {
                std::fs::write(&file, cluster.configuration("haproxy", &at)).unwrap();
                let mut command = Command::new("haproxy");
                command.arg("-db").arg("-f").arg(&file);
                command
            }
        };
        // Debian has both where only root looks for programs.
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap());
        let process = Process::spawn(command.env("PATH", path), &directory.join("balancer.log"));
        let ready = async {
            while tokio::net::TcpStream::connect(&at).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(HANG, ready).await;
        assert!(waited.is_ok(), "{kind:?} does not serve: {}", cluster.log("balancer"));
        Self { at, _process: process }
    }
}
