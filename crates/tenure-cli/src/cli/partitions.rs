//! The words of `tenure partitions`.

use clap::{Args, Subcommand};
use tenure::{ElectionName, NodeId, TaskList, TaskListName};

use super::task_list;

/// Work that is divided among nodes: which task lists there are, and who owns which partition
#[derive(Subcommand, Debug)]
#[command(after_help = "\
Examples:
  tenure partitions create billing/invoices --count 64
  tenure partitions show billing/invoices")]
pub enum Partitions {
    Create(Create),
    List(List),
    Show(Show),
    Resize(Resize),
    Drop(Drop),
    Pause(Pause),
    Move(Move),
    Drain(Drain),
}

/// What work there is, for a node that divides it or works on it.
#[derive(Args, Debug, Clone)]
pub struct TaskListSettings {
    /// There shall be this task list, with so many partitions, such as billing/invoices=64; may be given several
    /// times
    #[arg(long, env = "TENURE_TASK_LIST", value_name = "DOMAIN/TASKLIST=NUMBER", value_delimiter = ',',
          value_parser = counted)]
    pub task_list: Vec<Counted>,
    /// Work on this task list, for a program that is told over HTTP what it may work on; may be given several times
    #[arg(long, env = "TENURE_WORK", value_name = "DOMAIN/TASKLIST", value_delimiter = ',',
          value_parser = task_list)]
    pub work: Vec<TaskListName>,
}

/// A task list, and how many partitions it has.
#[derive(Debug, Clone)]
pub struct Counted {
    pub list: TaskListName,
    pub count: u32,
}

fn partitions(text: &str) -> Result<u32, String> {
    let most = TaskList::MOST_PARTITIONS;
    let count = text.parse().ok().filter(|count| *count <= most);
    count.ok_or_else(|| format!("`{text}` is not a number of partitions from 0 to {most}"))
}

fn counted(text: &str) -> Result<Counted, String> {
    let (list, count) = text.rsplit_once('=').ok_or("write it like billing/invoices=64")?;
    let list = task_list(list)?;
    let count = partitions(count)?;
    Ok(Counted { list, count })
}

/// Whose work it is.
#[derive(Args, Debug)]
pub struct Divided {
    /// The election whose leader divides the work
    #[arg(long, env = "TENURE_ELECTION", value_name = "NAME", default_value = "coordinator")]
    pub election: ElectionName,
}

/// Make a task list
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure partitions create billing/invoices --count 64
  tenure partitions create media/encode --count 12 --needs gpu=yes --weight 4 --spread")]
pub struct Create {
    /// The task list
    #[arg(value_name = "DOMAIN/TASKLIST", value_parser = task_list)]
    pub list: TaskListName,
    /// How many partitions it has
    #[arg(long, value_name = "NUMBER", value_parser = partitions)]
    pub count: u32,
    /// What each of them weighs, relative to those of other task lists
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub weight: u32,
    /// Only nodes with this label get any; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub needs: Vec<String>,
    /// No zone (label zone) gets more than its even part, if it can be helped
    #[arg(long)]
    pub spread: bool,
    #[command(flatten)]
    pub divided: Divided,
}

/// List the task lists, and how many of their partitions are owned
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure partitions list --json | jq -r .task_list")]
pub struct List {
    #[command(flatten)]
    pub divided: Divided,
}

/// Show who owns which partition
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure partitions show billing/invoices")]
pub struct Show {
    /// Only of this task list
    #[arg(value_name = "DOMAIN/TASKLIST", value_parser = task_list)]
    pub list: Option<TaskListName>,
    #[command(flatten)]
    pub divided: Divided,
}

/// Change how many partitions a task list has
///
/// Those that are cut off are given up by their owners first.
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure partitions resize billing/invoices --count 128")]
pub struct Resize {
    /// The task list
    #[arg(value_name = "DOMAIN/TASKLIST", value_parser = task_list)]
    pub list: TaskListName,
    /// How many partitions it is to have
    #[arg(long, value_name = "NUMBER", value_parser = partitions)]
    pub count: u32,
    #[command(flatten)]
    pub divided: Divided,
}

/// Drop a task list: nobody works on it any more
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure partitions drop billing/invoices")]
pub struct Drop {
    /// The task list
    #[arg(value_name = "DOMAIN/TASKLIST", value_parser = task_list)]
    pub list: TaskListName,
    #[command(flatten)]
    pub divided: Divided,
}

/// Have nobody work on a task list for a while
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure partitions pause billing/invoices
  tenure partitions pause billing/invoices --resume")]
pub struct Pause {
    /// The task list
    #[arg(value_name = "DOMAIN/TASKLIST", value_parser = task_list)]
    pub list: TaskListName,
    /// Go on
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub divided: Divided,
}

/// Have a partition be with a certain node, as long as that is there
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure partitions move billing/invoices 7 --to worker-2
  tenure partitions move billing/invoices 7          to wherever balance asks for")]
pub struct Move {
    /// The task list
    #[arg(value_name = "DOMAIN/TASKLIST", value_parser = task_list)]
    pub list: TaskListName,
    /// The number of the partition
    #[arg(value_name = "PARTITION")]
    pub partition: u32,
    /// The node; without it the partition is like all others again
    #[arg(long, value_name = "NODE")]
    pub to: Option<NodeId>,
    #[command(flatten)]
    pub divided: Divided,
}

/// Have a node give up all that it owns, and get nothing more of the task lists that there are
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure partitions drain worker-2
  tenure partitions drain worker-2 --undo")]
pub struct Drain {
    /// The node
    #[arg(value_name = "NODE")]
    pub node: NodeId,
    /// Let it have its part again
    #[arg(long)]
    pub undo: bool,
    #[command(flatten)]
    pub divided: Divided,
}
