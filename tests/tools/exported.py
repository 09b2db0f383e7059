#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reads exported files as their specifications say, and prints what is in them as sorted lines, for comparison with
what profscript and perf say. Breaks of a format's rules end it with a message.

    exported.py perfetto|pprof|chrome|speedscope|firefox|html FILE
    exported.py trace FILE     the same lines from the output of `profscript trace -g --json`

Protobuf is decoded by protoc with the published field numbers (perfetto.proto, profile.proto).
"""
import base64
import collections
import gzip
import json
import os
import re
import struct
import subprocess
import sys

TOOLS = os.path.dirname(os.path.abspath(__file__))


def need(condition, message, *args):
    if not condition:
        sys.exit('exported.py: ' + message % args)


def protoc(schema, message, data):
    """Returns a message as (name, value) lists. protoc prints fields that the schema lacks as bare numbers."""
    text = subprocess.run(['protoc', '--decode=' + message, '-I', TOOLS, os.path.join(TOOLS, schema)],
                          input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
    root = []
    stack = [root]
    for line in text.splitlines():
        line = line.strip()
        if line == '}':
            stack.pop()
            continue
        name, opened, value = re.match(r'(\w+)(?: (\{)|: (.*))$', line).groups()
        need(not name[0].isdigit(), 'field %s is not in the schema', name)
        if opened:
            inner = []
            stack[-1].append((name, inner))
            stack.append(inner)
        else:
            stack[-1].append((name, json.loads(value) if value[0] != '"' and value[0] not in 'ft' else
                              value == 'true' if value[0] in 'ft' else unquote(value)))
    return root


def unquote(text):
    return text[1:-1].encode().decode('unicode_escape').encode('latin1').decode('utf-8', 'strict')


def get(message, name, default=None):
    for key, value in message:
        if key == name:
            return value
    return default


def every(message, name):
    return [value for key, value in message if key == name]


def plain(name):
    """A function's name without blanks; '?' if only its file is known."""
    return '?' if name == 'Unknown' or re.match(r'\[.*\]$', name) else name.replace(' ', '_')


def add_sum(lines, event, key, value):
    for one in value if isinstance(value, list) else [value]:
        lines['sum %s %s' % (event, key)] += int(str(one), 0) if re.match(r'-?\d+$|0x[\da-f]+$', str(one)) else len(one)


def count(lines, *words):
    lines[' '.join(str(word) for word in words)] += 1


class Sequence:
    """The incremental state of a sequence of packets."""

    def __init__(self):
        self.known = collections.defaultdict(dict)

    def add(self, interned):
        for kind, value in interned:
            iid = get(value, 'iid')
            need(iid, '%s without an iid', kind)
            need(iid not in self.known[kind], '%s %d is defined twice', kind, iid)
            self.known[kind][iid] = value

    def name(self, kind, iid, field='name'):
        need(iid in self.known[kind], '%s %s is not defined before its use', kind, iid)
        return get(self.known[kind][iid], field)

    def frames(self, iid):
        need(iid in self.known['callstacks'], 'callstack %s is not defined', iid)
        names = []
        for frame in every(self.known['callstacks'][iid], 'frame_ids'):
            need(frame in self.known['frames'], 'frame %d is not defined', frame)
            one = self.known['frames'][frame]
            mapping = self.known['mappings'][get(one, 'mapping_id')]
            for path in every(mapping, 'path_string_ids'):
                self.name('mapping_paths', path, 'str')
            names.append(self.name('function_names', get(one, 'function_name_id'), 'str'))
        return names


def annotation(value):
    if any(key == 'array_values' for key, _ in value):
        return [annotation(one) for one in every(value, 'array_values')]
    for key, one in value:
        if key != 'name_iid':
            return one
    return []


def perfetto(data, lines):
    sequences, tracks, open_slices, flows, slices = {}, {}, {}, collections.Counter(), []
    threads, switches, sums = {}, {}, collections.Counter()
    for kind, packet in protoc('perfetto.proto', 'perfetto.protos.Trace', data):
        need(kind == 'packet', 'what is %s', kind)
        number, flags = get(packet, 'trusted_packet_sequence_id'), get(packet, 'sequence_flags', 0)
        need(number, 'a packet without a sequence')
        if flags & 1:
            need(number not in sequences, 'sequence %d begins twice', number)
            sequences[number] = Sequence()
        need(number in sequences or get(packet, 'ftrace_events'), 'sequence %d does not begin', number)
        state = sequences.get(number)
        if get(packet, 'interned_data'):
            state.add(get(packet, 'interned_data'))
        defaults = get(packet, 'trace_packet_defaults')
        if defaults:
            state.title = get(get(get(defaults, 'perf_sample_defaults'), 'timebase'), 'name')
        track = get(packet, 'track_descriptor')
        if track:
            uuid, parent = get(track, 'uuid'), get(track, 'parent_uuid')
            need(parent is None or parent in tracks, 'track %s has an unknown parent', uuid)
            tracks[uuid] = track
            if get(track, 'thread'):
                threads[get(get(track, 'thread'), 'tid')] = get(get(track, 'thread'), 'thread_name')
        event, at = get(packet, 'track_event'), get(packet, 'timestamp')
        if event:
            need(flags & 2, 'an event that does not need the state')
            need(get(event, 'track_uuid') in tracks, 'an event of an unknown track')
            where, what = get(event, 'track_uuid'), get(event, 'type')
            for flow in every(event, 'flow_ids'):
                flows[flow] += 1
            name = get(event, 'name_iid') and state.name('event_names', get(event, 'name_iid'))
            if get(event, 'category_iids'):
                state.name('event_categories', get(event, 'category_iids'))
            for value in every(event, 'debug_annotations'):
                key = state.name('debug_annotation_names', get(value, 'name_iid'))
                if what == 3:
                    add_sum(lines, name, key, annotation(value))
            if what == 3:
                count(lines, 'event', name)
            elif what == 1:
                need(where not in open_slices, 'slices overlap on track %d', where)
                open_slices[where] = (name, at)
                slices.append(every(event, 'flow_ids'))
            elif what == 2:
                need(where in open_slices, 'an end without a begin')
                name, begin = open_slices.pop(where)
                need(at >= begin, 'a slice that ends before it begins')
                count(lines, 'slice', name)
                sums['ns', name, ''] += at - begin
            elif what == 4:
                lines['counter ' + get(tracks[where], 'name')] += int(get(event, 'double_counter_value'))
        sample = get(packet, 'perf_sample')
        if sample and get(sample, 'kernel_records_lost'):
            lines['lost'] += get(sample, 'kernel_records_lost')
        elif sample:
            need(get(sample, 'tid') in threads, 'a sample of an unknown thread')
            names = state.frames(get(sample, 'callstack_iid'))
            count(lines, 'stack', state.title, len(names), plain(names[-1]) if names else '')
            count(lines, 'sample', state.title)
        bundle = get(packet, 'ftrace_events')
        for one in every(bundle or [], 'event'):
            switch, cpu = get(one, 'sched_switch'), get(bundle, 'cpu', 0)
            if switch:
                count(lines, 'switch')
                before = switches.setdefault(cpu, [])
                before.append((get(one, 'timestamp'), get(switch, 'prev_pid'), get(switch, 'next_pid')))
            else:
                count(lines, 'ftrace', one[-1][0])
    need(not open_slices, '%d slices do not end', len(open_slices))
    for ids in slices:
        need(len(ids) in (0, 2), 'a slice with %d flows', len(ids)) # those of scripts have none
        if not ids:
            continue
        lines['flow from its first event'] += flows[ids[0]] > 1
        lines['flow to its second event'] += flows[ids[1]] > 1
    for cpu, list_ in switches.items():
        for (begin, _, tid), (end, prev, _) in zip(list_, list_[1:]):
            need(end >= begin, 'switches are not in order')
            need(tid in (0, prev), 'CPU %d ran %d until %d left', cpu, tid, prev)
            if tid:
                lines['running'] += 1
                lines['running ns'] += end - begin
    for (what, name, key), value in sums.items():
        if what == 'ns':
            lines['slice ns ' + name] = value
    for tid, name in threads.items():
        lines['thread %d %s' % (tid, name)] = 1


def pprof(data, lines):
    profile = protoc('profile.proto', 'perftools.profiles.Profile', gzip.decompress(data))
    strings = every(profile, 'string_table')
    need(strings[0] == '', 'string 0 is not empty')
    types = [strings[get(one, 'type')] for one in every(profile, 'sample_type')]
    units = [strings[get(one, 'unit')] for one in every(profile, 'sample_type')]
    functions = {get(one, 'id'): strings[get(one, 'name')] for one in every(profile, 'function')}
    mappings = {get(one, 'id') for one in every(profile, 'mapping')}
    locations = {}
    for one in every(profile, 'location'):
        need(get(one, 'mapping_id', 0) in mappings | {0}, 'a location of an unknown mapping')
        locations[get(one, 'id')] = functions[get(get(one, 'line'), 'function_id')]
    for sample in every(profile, 'sample'):
        values = every(sample, 'value')
        need(len(values) == len(types), 'a sample with %d values', len(values))
        for name, unit, value in zip(types, units, values):
            lines['%s/%s' % (name, unit)] += value
        frames = [locations[one] for one in every(sample, 'location_id')]
        count(lines, 'leaf', plain(frames[0]) if frames else '')
        for label in every(sample, 'label'):
            if strings[get(label, 'key')] == 'comm':
                lines['comm ' + strings[get(label, 'str')]] += values[0]
    for one in every(profile, 'comment'):
        lines['comment ' + strings[one]] = 1
    lines['shown ' + strings[get(profile, 'default_sample_type')]] = 1


def count_waiting(lines, runs, changes, end):
    """The time of all waits, from when all CPUs have had a switch. runs: (cpu, from); changes: (time, by)."""
    first = {}
    for cpu, at in runs:
        first[cpu] = min(at, first.get(cpu, at))
    if first and changes:
        begin = max(first.values())
        lines['waiting ns'] = round(sum(by * (end - max(at, begin)) for at, by in changes))


def chrome(data, lines):
    trace = json.loads(data)
    runs, changes, lengths, end = [], [], collections.Counter(), 0
    frames, threads, open_slices, last = trace.get('stackFrames', {}), {}, {}, {}
    flows = collections.Counter()
    for event in trace['traceEvents']:
        phase, name, at = event['ph'], event.get('name'), event.get('ts')
        if phase == 'M':
            if name == 'thread_name':
                threads[event['tid']] = event['args']['name']
            continue
        at = round(at * 1000)
        if phase != 'C' and event['pid'] != 9500000:
            need(event['tid'] in threads, 'thread %s has no name', event['tid'])
        if phase == 'i':
            count(lines, 'lost records' if event['cat'] == 'lost' else 'event', name)
            for key, value in event['args'].items():
                add_sum(lines, name, key, value)
            if event['cat'] == 'lost':
                lines['lost'] += event['args']['lost']
        elif phase == 'X':
            lines['running'] += 1
            lines['running ns'] += round(event['dur'] * 1000)
            need(at >= last.get(event['tid'], at), 'running slices overlap')
            last[event['tid']] = at + round(event['dur'] * 1000)
            runs.append((event['tid'], at))
            end = max(end, last[event['tid']])
        elif phase == 'b':
            need(event['id'] not in open_slices, 'slices overlap')
            open_slices[event['id']] = at
        elif phase == 'e':
            count(lines, 'slice', name)
            lines['slice ns ' + name] += at - open_slices.pop(event['id'])
        elif phase in 'sf':
            flows[event['id']] += 1 if phase == 's' else -1
            count(lines, 'flow', phase)
        elif phase == 'P':
            depth, leaf = 0, event.get('sf')
            frame = frames.get(str(leaf))
            name_of_leaf = plain(frame['name']) if frame else ''
            while frame:
                depth, frame = depth + 1, frames.get(frame.get('parent'))
            count(lines, 'sample', name)
            count(lines, 'stack', name, depth, name_of_leaf)
        elif phase == 'C' and name.startswith('waiting for CPU'):
            need(event['args']['tasks'] >= 0, 'a negative queue')
            changes.append((at, event['args']['tasks'] - lengths[name]))
            lengths[name] = event['args']['tasks']
        elif phase == 'C':
            (unit, value), = event['args'].items()
            need(unit == ('ns' if '-clock' in name else 'count'), 'the unit of ' + name)
            lines['counter ' + name] += value
        else:
            need(False, 'phase %s', phase)
    need(not open_slices, 'slices do not end')
    need(not any(flows.values()), 'flows do not end')
    count_waiting(lines, runs, changes, end)


def html(data, lines):
    page = json.loads(re.search('<script id="data".*?>(.*?)</script>', data.decode(), re.S).group(1))
    for kind in 'runs', 'waits', 'pairs', 'events', 'counts':
        items = page[kind]
        columns = [struct.unpack('<%d%s' % (items['n'], code), base64.b64decode(items[name]))
                   for name, code in (('from', 'd'), ('to', 'd'), ('what', 'i'), ('row', 'i'))]
        page[kind] = list(zip(*columns))
    for _, _, what, row in page['events']:
        need(0 <= row < len(page['threads']), 'an event without a thread')
        count(lines, 'event', page['names'][what])
    for begin, end, what, lane in page['pairs']:
        need(0 <= lane < len(page['lanes']), 'a slice without a lane')
        count(lines, 'slice', page['names'][what])
        lines['slice ns ' + page['names'][what]] += round(end - begin)
    last = {}
    for begin, end, _, cpu in page['runs']:
        need(begin >= last.get(cpu, begin), 'running slices overlap')
        last[cpu] = end
        lines['running'] += 1
        lines['running ns'] += round(end - begin)
    for at, value, _, series in page['counts']:
        lines['counter ' + page['series'][series]] += round(value)
    lines['lost'] += sum(lost[3] for lost in page['losses'])
    changes = [(begin, 1) for begin, _, _, _ in page['waits']] + [(end, -1) for _, end, _, _ in page['waits']]
    count_waiting(lines, [(cpu, begin) for begin, _, _, cpu in page['runs']], changes, max(last.values(), default=0))


def speedscope(data, lines):
    import jsonschema
    profile = json.loads(data)
    with open(os.path.join(TOOLS, 'speedscope.schema.json')) as schema:
        jsonschema.validate(profile, json.load(schema))
    names = [frame['name'] for frame in profile['shared']['frames']]
    for one in profile['profiles']:
        need(len(one['samples']) == len(one['weights']), 'samples without weights')
        need(sum(one['weights']) == one['endValue'], 'the weights do not add up')
        event = one['name'].split()[-1]
        lines['sample ' + event] += len(one['samples'])
        lines['weight %s %s' % (event, one['unit'])] += one['endValue']
        for sample in one['samples']:
            count(lines, 'stack', event, len(sample), plain(names[sample[-1]]) if sample else '')


def firefox(data, lines):
    profile = json.loads(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data)
    schemas = {one['name'] for one in profile['meta']['markerSchema']}
    for thread in profile['threads']:
        strings, nodes = thread['stringTable'], thread['stackTable']['data']
        frames = thread['frameTable']['data']
        at = 0
        for stack, time, _ in thread['samples']['data']:
            need(time >= at, 'samples are not in order')
            at, depth, node = time, 0, stack
            if node is None:
                continue
            leaf = plain(strings[frames[nodes[node][1]][0]].rsplit(' (in ', 1)[0])
            while node is not None:
                need(nodes[node][0] is None or nodes[node][0] < node, 'a stack before its prefix')
                depth, node = depth + 1, nodes[node][0]
            count(lines, 'stack', depth, leaf)
            lines['samples'] += 1
        for name, start, end, phase, _, data_ in thread['markers']['data']:
            need(data_['type'] in schemas, 'a marker without a schema')
            if data_['type'] == 'lost':
                lines['lost'] += data_['lost']
            elif phase == 1:
                count(lines, 'slice', strings[name])
                lines['slice ns ' + strings[name]] += round((end - start) * 1e6)
            else:
                count(lines, 'event', strings[name])
                for key, value in data_.items():
                    if key != 'type':
                        add_sum(lines, strings[name], key, value)
    lines['paused'] = len(profile['pausedRanges'])


def trace(data, lines):
    for line in data.decode().splitlines():
        event = json.loads(line)
        name, fields, stack = event['event'], list(event)[7:], event.get('stack') or None
        if stack is not None:
            leaf = plain(re.sub(r'\+0x[0-9a-f]+ \(.*$| \(inlined\).*$| \([^()]*\)$', '', stack[0])) if stack else ''
            count(lines, 'sample', name)
            count(lines, 'stack', name, len(stack), leaf)
        if stack is not None and ':' not in name:
            continue
        count(lines, 'event', name)
        for key in ['cpu'] + [key for key in fields if key != 'stack']:
            add_sum(lines, name, key.replace('event_', '', 1), event[key])


def main():
    kind, path = sys.argv[1:]
    lines = collections.Counter()
    with open(path, 'rb') as file:
        data = file.read()
    {'perfetto': perfetto, 'pprof': pprof, 'chrome': chrome, 'speedscope': speedscope, 'firefox': firefox,
     'html': html, 'trace': trace}[kind](data, lines)
    for line in sorted(lines):
        print(line, lines[line])


if __name__ == '__main__':
    main()
