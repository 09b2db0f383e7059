#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reads metrics as their specifications say, and prints them as sorted lines: name{label="value",...} value, with
histograms as name_bucket, name_sum and name_count. Breaks of a rule end it with a message.

    metrics.py prometheus FILE     read by the parser of Prometheus' Python client
    metrics.py otlp FILE           read by protoc with the published field numbers (otlp.proto)
    metrics.py receive FOLDER [STATUS...]
                                   a receiver of OTLP: prints its port to FOLDER/port, and writes the bodies to
                                   FOLDER/N.pb. It answers the first requests with these statuses, then with 200.
"""
import collections
import http.server
import os
import re
import sys

from exported import get, protoc


def need(condition, message, *args):
    if not condition:
        sys.exit('metrics.py: ' + message % args)


def line(name, labels, value):
    inner = ','.join('%s="%s"' % (key, labels[key].replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n'))
                     for key in sorted(labels))
    return '%s%s %s' % (name, '{%s}' % inner if inner else '', '%.15g' % value)


def check_histograms(family, series):
    """series: by the labels without le, the buckets by le, and the sum and the count."""
    for labels, one in series.items():
        bounds = sorted(one['bucket'])
        need(bounds and bounds[-1] == float('inf'), '%s has no bucket +Inf', family)
        counts = [one['bucket'][bound] for bound in bounds]
        need(counts == sorted(counts), '%s: the buckets of %s decrease', family, labels)
        need(counts[-1] == one['count'], '%s: +Inf is %s, the count %s', family, counts[-1], one['count'])
        need('sum' in one, '%s has no sum', family)


def prometheus(data):
    from prometheus_client.parser import text_string_to_metric_families
    lines, names, seen = [], set(), set()
    for family in text_string_to_metric_families(data.decode('utf-8', 'strict')):
        need(family.name not in names, '%s occurs twice', family.name)
        need(family.documentation and family.type != 'unknown', '%s has no HELP or no TYPE', family.name)
        names.add(family.name)
        histograms = collections.defaultdict(lambda: {'bucket': {}})
        for name, labels, value, *_ in family.samples:
            need(re.match(r'[a-z_][a-z0-9_]*$', name), '%s is no name', name)
            for label in labels:
                need(re.match(r'[a-zA-Z_][a-zA-Z0-9_]*$', label), '%s is no label', label)
            if family.type == 'counter':
                need(name.endswith('_total') and value >= 0, '%s is no counter', name)
            elif family.type == 'gauge':
                need(not re.search('_(total|count|sum|bucket)$', name), '%s is no gauge', name)
            elif family.type == 'histogram':
                rest = tuple(sorted((key, labels[key]) for key in labels if key != 'le'))
                part = name[len(family.name) + 1:]
                if part == 'bucket':
                    histograms[rest][part][float(labels['le'])] = value
                    labels = dict(labels, le='%.15g' % float(labels['le']))
                else:
                    histograms[rest][part] = value
            lines.append(line(name, labels, value))
            need(lines[-1].rsplit(' ', 1)[0] not in seen, '%s occurs twice', lines[-1])
            seen.add(lines[-1].rsplit(' ', 1)[0])
        check_histograms(family.name, histograms)
    return lines


def attributes(message, name='attributes'):
    found = [(get(pair, 'key'), get(get(pair, 'value'), 'string_value', '')) for key, pair in message if key == name]
    need(len(found) == len(dict(found)), 'an attribute occurs twice: %s', found)
    return dict(found)


def otlp_histogram(name, point, labels):
    counts = [value for key, value in point if key == 'bucket_counts']
    bounds = [value for key, value in point if key == 'explicit_bounds']
    need(bounds == sorted(bounds) and len(counts) == len(bounds) + 1, '%s: %d counts', name, len(counts))
    need(sum(counts) == get(point, 'count', 0), '%s: the buckets are not the count', name)
    total = 0
    for count, bound in zip(counts, bounds + [float('inf')]):
        total += count
        yield line(name + '_bucket', dict(labels, le='%.15g' % bound), total)
    yield line(name + '_sum', labels, get(point, 'sum'))
    yield line(name + '_count', labels, get(point, 'count', 0))


def otlp(data):
    lines, names = [], set()
    for _, resource in protoc('otlp.proto', 'opentelemetry.ExportMetricsServiceRequest', data):
        lines.append(line('resource', attributes(get(resource, 'resource')), 1))
        for metric in [value for key, value in get(resource, 'scope_metrics') if key == 'metrics']:
            name = get(metric, 'name')
            need(name not in names, '%s occurs twice', name)
            names.add(name)
            kind, body = [pair for pair in metric if pair[0] in ('gauge', 'sum', 'histogram')][0]
            need(kind == 'gauge' or get(body, 'aggregation_temporality') == 2, '%s is not cumulative', name)
            need(kind != 'sum' or get(body, 'is_monotonic'), '%s is not monotonic', name)
            for point in [value for key, value in body if key == 'data_points']:
                labels, start, time = attributes(point), get(point, 'start_time_unix_nano'), get(point, 'time_unix_nano')
                need(1.6e18 < start <= time < 1e19, '%s: from %s to %s', name, start, time)
                if kind == 'histogram':
                    lines += otlp_histogram(name, point, labels)
                else:
                    lines.append(line(name, labels, get(point, 'as_double')))
    need(len(lines) == len({one.rsplit(' ', 1)[0] for one in lines}), 'a series occurs twice')
    return lines


def receive(folder, statuses):
    class Handler(http.server.BaseHTTPRequestHandler):
        number = 0

        def do_POST(self):
            body = self.rfile.read(int(self.headers['Content-Length']))
            status = int(statuses.pop(0)) if statuses else 200
            ok = self.path == '/v1/metrics' and self.headers['Content-Type'] == 'application/x-protobuf'
            if ok and status == 200:  # the file is there before the sender knows
                Handler.number += 1
                with open('%s/%d.tmp' % (folder, Handler.number), 'wb') as file:
                    file.write(body)
                os.rename('%s/%d.tmp' % (folder, Handler.number), '%s/%d.pb' % (folder, Handler.number))
            self.send_response(status if ok else 404)
            self.send_header('Content-Length', '0')
            self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
    with open(folder + '/port.tmp', 'w') as file:
        file.write('%d\n' % server.server_port)
    os.rename(folder + '/port.tmp', folder + '/port')
    server.serve_forever()


def main():
    if sys.argv[1] == 'receive':
        receive(sys.argv[2], sys.argv[3:])
    with open(sys.argv[2], 'rb') as file:
        lines = {'prometheus': prometheus, 'otlp': otlp}[sys.argv[1]](file.read())
    sys.stdout.write(''.join(one + '\n' for one in sorted(lines)))


main()
