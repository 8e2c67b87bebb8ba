// Look-ups from Node through the addon pleach.c: node look_up.js FOLDER_OF_THE_ADDON
// The file orders.pleach is that of ../look_up.c.
const assert = require("node:assert");
const pleach = require(`${process.argv[2]}/pleach.node`);

const orders = pleach.open("orders.pleach");
const [customers, found] = pleach.get(orders, BigInt64Array.of(9n, 8n, 5n, -1n));
assert.deepStrictEqual([...customers], [11n, 0n, 11n, 0n]);
assert.strictEqual(found[0], 0b0101);
assert.throws(() => pleach.open("none.pleach"), /none.pleach/);
assert.throws(() => pleach.get(orders, [1]), TypeError);
console.log("9 and 5 are of customer", customers[0]);
