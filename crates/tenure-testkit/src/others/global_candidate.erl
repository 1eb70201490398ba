%% A candidate by the name that Erlang's global registers, for benches: CLOCK_NS NODE...
%% `mod.rs` has what it says, and what it can be told. CLOCK_NS is how far the boot clock is ahead of Erlang's.
-module(global_candidate).
-export([main/1]).

-define(NAME, bench).
%% How often nodes that are not connected are looked for, and followers look whether there is a leader.
-define(PAUSE, 1000).

main([Clock | Nodes]) ->
    put(clock, list_to_integer(Clock)),
    Peers = [list_to_atom(Node) || Node <- Nodes],
    [net_adm:ping(Peer) || Peer <- Peers],
    global:sync(),
    spawn(fun() -> reconnect(Peers) end),
    Self = self(),
    spawn(fun() -> read(Self) end),
    obey(stand()).

obey(Candidate) ->
    receive
        {order, "resign"} ->
            Called = now_ns(),
            exit(Candidate, kill),
            say("resigned ~b", [Called]),
            obey(none);
        {order, "stand"} ->
            obey(stand());
        {order, "watch"} ->
            Clock = get(clock),
            spawn(fun() -> put(clock, Clock), Now = now_ns(), say("watches ~b", [Now]), watch(Candidate, Now) end),
            obey(Candidate);
        stop ->
            halt()
    end.

%% A process that leads while it has the name, and asks for it again when whoever has it is gone.
stand() ->
    Clock = get(clock),
    spawn(fun() -> put(clock, Clock), campaign() end).

%% Asks only when global knows of nobody: whoever asks while it still knows a node that is gone waits until that node
%% cannot be reached, for seconds.
campaign() ->
    case global:whereis_name(?NAME) of
        undefined ->
            case global:register_name(?NAME, self(), fun resolve/3) of
                yes ->
                    Now = now_ns(),
                    say("leads ~b", [Now]),
                    lead(Now),
                    campaign();
                no ->
                    campaign()
            end;
        Leader ->
            follow(Leader),
            campaign()
    end.

follow(Leader) ->
    case lists:member(node(Leader), [node() | nodes()]) of
        true ->
            Watch = monitor(process, Leader),
            receive {'DOWN', Watch, _, _, _} -> ok after ?PAUSE -> demonitor(Watch, [flush]) end;
        false ->
            timer:sleep(1)
    end.

lead(Since) ->
    receive
        {since, Asker, Question} -> Asker ! {Question, Since}, lead(Since);
        deposed -> ok
    end.

%% Where two have the name, whoever has had it for longer stands again: it was stopped or cut off, and another has
%% said since that it leads.
resolve(_Name, One, Other) ->
    {Keeps, Loses} =
        case since(One) >= since(Other) of
            true -> {One, Other};
            false -> {Other, One}
        end,
    Loses ! deposed,
    Keeps.

since(Candidate) ->
    Question = make_ref(),
    Candidate ! {since, self(), Question},
    receive {Question, Since} -> Since after ?PAUSE -> 0 end.

watch(Candidate, Claimed) ->
    Asked = now_ns(),
    case global:whereis_name(?NAME) of
        Candidate -> timer:sleep(1), watch(Candidate, Asked);
        _ -> say("ceased ~b", [Claimed])
    end.

reconnect(Peers) ->
    [net_adm:ping(Peer) || Peer <- Peers, not lists:member(Peer, nodes())],
    timer:sleep(?PAUSE),
    reconnect(Peers).

read(Main) ->
    case io:get_line("") of
        eof -> Main ! stop;
        Line -> Main ! {order, string:trim(Line)}, read(Main)
    end.

now_ns() -> os:perf_counter(nanosecond) + get(clock).

say(Format, Words) -> io:format(Format ++ "~n", Words).
