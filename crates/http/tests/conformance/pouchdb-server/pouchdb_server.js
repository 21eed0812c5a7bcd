// A PouchDB server in a folder, on a free port, which it prints. It ends with its standard input, unless STAYS is set.
'use strict';
const express = require('express');
const PouchDB = require('pouchdb');

const dir = process.argv[2];
const Stored = PouchDB.defaults({ prefix: dir + '/' });
const app = express();
const options = { configPath: dir + '/config.json', logPath: dir + '/log.txt' };
app.use('/', require('express-pouchdb')(Stored, options));
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
if (!process.env.STAYS) {
  process.stdin.on('end', () => process.exit(0)).resume();
}
