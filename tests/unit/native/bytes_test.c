/* SPDX-License-Identifier: GPL-2.0-only */
/* native/bytes.c: the bytes of protobuf fields, and JSON numbers and text. */
#include "native/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct bytes *b;

static int setup(void **state)
{
	(void)state;
	b = bytes_new();
	return b ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	bytes_free(b);
	return 0;
}

static void expect(const void *bytes, size_t n)
{
	assert_int_equal(b->failed, 0);
	assert_int_equal(b->size, n);
	assert_memory_equal(b->data, bytes, n);
	b->size = 0;
}

#define EXPECT(text) expect(text, sizeof(text) - 1)

static void test_proto(void **state)
{
	(void)state;
	proto_uint(b, 1, 150); /* the example of protobuf's documentation */
	EXPECT("\x08\x96\x01");
	proto_uint(b, 87, 0);
	EXPECT("\xb8\x05\x00");
	proto_uint(b, 1, UINT64_MAX);
	EXPECT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	proto_fixed64(b, 47, 0x0102030405060708);
	EXPECT("\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01");
	proto_double(b, 44, 1.0);
	EXPECT("\xe1\x02\0\0\0\0\0\0\xf0\x3f");
	proto_text(b, 2, "testing", 7);
	EXPECT("\x12\x07testing");
	proto_text(b, 2,
		   "\xc3\xbc\xff"
		   "a",
		   4); /* no UTF-8 */
	EXPECT("\x12\x04\xc3\xbc?a");
}

static void test_messages(void **state)
{
	size_t outer, inner;

	(void)state;
	outer = proto_open(b, 3);
	proto_uint(b, 1, 5);
	inner = proto_open(b, 1);
	proto_close(b, inner);
	proto_close(b, outer);
	EXPECT("\x1a\x87\x80\x80\x00\x08\x05\x0a\x80\x80\x80\x00");
	outer = proto_open(b, 1);
	for (int i = 0; i < 100000; i++)
		proto_uint(b, 1, 0);
	proto_close(b, outer);
	assert_int_equal(b->size, 5 + 200000);
	assert_memory_equal(b->data, "\x0a\xc0\x9a\x8c\x00", 5);
	b->size = 0;
	proto_entry(b, 4, 7, 4, -1);
	EXPECT("\x22\x0d\x08\x07\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	proto_entry_text(b, 4, 300, 6, "x", 1);
	EXPECT("\x22\x06\x08\xac\x02\x32\x01x");
	proto_list(b, 12, 4, (const int16_t[]){-1, 5}, 2, 1, 2);
	EXPECT("\x62\x0b\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x62\x02\x20\x05");
	proto_list(b, 12, 3, (const uint16_t[]){0xffff}, 2, 0, 1);
	EXPECT("\x62\x04\x18\xff\xff\x03");
}

static void test_json(void **state)
{
	(void)state;
	json_int(b, 0);
	EXPECT("0");
	json_int(b, -1234567);
	EXPECT("-1234567");
	json_uint(b, 1ULL << 53);
	EXPECT("9007199254740992");
	json_uint(b, UINT64_MAX);
	EXPECT("\"18446744073709551615\"");
	json_int(b, INT64_MIN);
	EXPECT("\"-9223372036854775808\"");
	json_time(b, 0, 3);
	EXPECT("0.000");
	json_time(b, 1234567, 3);
	EXPECT("1234.567");
	json_time(b, -7, 6);
	EXPECT("-0.000007");
	json_list(b, (const int32_t[]){1, -2, 30}, 4, 1, 3);
	EXPECT("[1,-2,30]");
	json_text(b, "a\"\\\n\xff", 5);
	EXPECT("\"a\\\"\\\\\\u000a\\\\xff\"");
}

/* Each length of a number, and numbers with zeros inside. */
static void test_digits(void **state)
{
	char text[32];
	uint64_t value = 0;

	(void)state;
	for (int i = 0; i < 16; i++) {
		for (uint64_t other = value; other <= 1ULL << 53; other++) {
			json_uint(b, other);
			expect(text, (size_t)snprintf(text, sizeof(text), "%llu",
						      (unsigned long long)other));
			json_time(b, -(double)other, 3);
			expect(text,
			       (size_t)snprintf(text, sizeof(text), "%s%llu.%03llu",
						other ? "-" : "", (unsigned long long)other / 1000,
						(unsigned long long)other % 1000));
			json_time(b, (double)other, 6);
			expect(text, (size_t)snprintf(text, sizeof(text), "%llu.%06llu",
						      (unsigned long long)other / 1000000,
						      (unsigned long long)other % 1000000));
			if (other > value + 12000)
				break;
		}
		value = i ? value * 10 : 9990;
	}
}

static void test_fields(void **state)
{
	static const struct {
		int32_t pid;
		char comm[8];
		uint64_t address;
		int16_t prio;
		uint8_t flags;
	} record = {-5, "12345678", 0xff, -1, 255};
	static const struct json_field fields[] = {
		{"\"pid\":", 6, JSON_INT, 0, 4}, {",\"comm\":", 8, JSON_TEXT, 4, 8},
		{",", 1, JSON_TEXT, 4, 3},	 {",", 1, JSON_ADDRESS, 16, 8},
		{",", 1, JSON_INT, 24, 2},	 {",", 1, JSON_UINT, 24, 2},
		{",", 1, JSON_UINT, 26, 1},	 {",", 1, JSON_UINT, 0, 4},
	};

	(void)state;
	json_fields(b, fields, 8, &record);
	EXPECT("\"pid\":-5,\"comm\":\"12345678\",\"123\",\"0xff\",-1,65535,255,4294967291");
	json_member_int(b, "a long key, which more than two words hold: ", 44, -1);
	EXPECT("a long key, which more than two words hold: -1");
	json_member_time(b, "\"ts\":", 5, 1500, 3);
	EXPECT("\"ts\":1.500");
	for (size_t n = 0; n < 40; n++) {
		const char *text = "abcdefghijklmnopqrstuvwxyz0123456789ABCD";

		bytes_put(b, text, n);
		expect(text, n);
	}
}

static void test_base64(void **state)
{
	(void)state;
	bytes_base64(b, "", 0);
	EXPECT("");
	bytes_base64(b, "M", 1);
	EXPECT("TQ==");
	bytes_base64(b, "Ma", 2);
	EXPECT("TWE=");
	bytes_base64(b, "Man\xff\xfe\xfd", 6);
	EXPECT("TWFu//79");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_proto, setup, teardown),
		cmocka_unit_test_setup_teardown(test_messages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
		cmocka_unit_test_setup_teardown(test_digits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(test_base64, setup, teardown),
	};

	return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
