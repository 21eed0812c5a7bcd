// Makes the built-in objects of a new engine safe to share between documents. Evaluated before any source of a view
// is; gives the function that locks them.
(function () {
  'use strict';
  const { apply, ownKeys } = Reflect;
  const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf } = Object;

  // The engine looks at its clock between steps of a script. Some of its own functions are one step whatever
  // they are given; these refuse what would keep them busy for minutes.
  const ELEMENTS_MAX = 1 << 22;
  const COMPARISONS_MAX = 2 ** 31;
  const MARKS_MAX = 1 << 15;

  function refuseLong(list, given) {
    for (const each of [list, ...given]) {
      if (each !== null && typeof each === 'object' && each.length > ELEMENTS_MAX) {
        throw new RangeError(`a list of ${each.length} elements is too long for this`);
      }
    }
  }

  function refuseLongSearch(text, [sought]) {
    if (typeof text === 'string' && typeof sought === 'string'
        && text.length * sought.length > COMPARISONS_MAX) {
      throw new RangeError('the texts are too long to look for one in the other');
    }
  }

  // Marks that follow each other are put in order by insertion, which is quadratic in their number.
  function refuseManyMarks(text) {
    if (typeof text === 'string' && text.length > MARKS_MAX && /\p{M}{1000}/u.test(text)) {
      throw new RangeError('the text has too many accents on one letter');
    }
  }

  function guard(object, names, refuse) {
    for (const name of names) {
      const native = object[name];
      const guarded = { [name](...given) {
        refuse(this, given);
        return apply(native, this, given);
      } }[name];
      defineProperty(guarded, 'length', { value: native.length });
      object[name] = guarded;
    }
  }

  guard(Array.prototype, ['concat', 'copyWithin', 'flat', 'flatMap', 'join', 'reverse', 'shift', 'slice', 'sort',
    'splice', 'toLocaleString', 'toReversed', 'toSorted', 'toSpliced', 'unshift', 'with'], refuseLong);
  guard(JSON, ['stringify'], refuseLong);
  guard(String.prototype, ['includes', 'indexOf', 'replace', 'replaceAll', 'split'], refuseLongSearch);
  guard(String.prototype, ['localeCompare', 'normalize'], refuseManyMarks);
  guard(String, ['raw'], (_, [template]) => refuseLong(template?.raw, []));
  // These work through any iterator without a step in between.
  for (const name of ['drop', 'includes', 'join']) delete Iterator.prototype[name];
  for (const name of ownKeys(Set.prototype)) {
    if (/^(is.*Of|isDisjointFrom|union|intersection|difference|symmetricDifference)$/.test(String(name))) {
      delete Set.prototype[name];
    }
  }
  // The engine calls this for every error, also for the one that ends a script, and then forgets that one; and how many
  // frames of a stack are shown would be remembered from one document to the next.
  defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false, configurable: false });
  defineProperty(Error, 'stackTraceLimit', { value: 10, writable: false, configurable: false });

  // Objects get members of these names by assigning (`toString`, `name`), which an inherited property that cannot be
  // assigned to would prevent. So here they are accessors, which give the object one of its own.
  const inherited = [Object.prototype, Function.prototype, Array.prototype, Error.prototype];

  function letBeHidden(prototype, key, { value, enumerable }) {
    const { set } = { set(own) {
      if (this === prototype || this === null || typeof this !== 'object' && typeof this !== 'function') {
        throw new TypeError(`'${key}' is read-only`);
      }
      defineProperty(this, key, { value: own, writable: true, enumerable: true, configurable: true });
    } };
    const { get } = { get() { return value; } };
    defineProperty(prototype, key, { get, set, enumerable, configurable: false });
  }

  // Every object that a script finds in a new engine is frozen, so that nothing that it sees there can be changed.
  function lock(root) {
    for (const prototype of inherited) {
      for (const key of ownKeys(prototype)) {
        const property = getOwnPropertyDescriptor(prototype, key);
        if (typeof key === 'string' && property.writable && property.configurable) {
          letBeHidden(prototype, key, property);
        }
      }
    }
    const seen = new Set();
    const waiting = [root, function* () {}, (function* () {})(), async () => {}, async function* () {},
      (async function* () {})(), [].values(), [].values().map((x) => x), Iterator.from({ next() {} }),
      new Map().entries(), new Set().values(), ''[Symbol.iterator](), 'x'.matchAll(/x/g), /x/];
    while (waiting.length > 0) {
      const object = waiting.pop();
      if (object === null || typeof object !== 'object' && typeof object !== 'function' || seen.has(object)) {
        continue;
      }
      seen.add(object);
      waiting.push(getPrototypeOf(object));
      for (const key of ownKeys(object)) {
        const property = getOwnPropertyDescriptor(object, key);
        waiting.push(property.value, property.get, property.set);
      }
      freeze(object);
    }
  }

  return { lock };
})()
